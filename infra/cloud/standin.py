"""Plays AWS for the tests: the single-machine edition serves the API, DynamoDB, S3 and
KMS. Every other answer is recorded here, right by default, and a lie replaces one."""

import base64
import io
import json
import os
import pathlib
import subprocess
import time
import zipfile

import boto3
from account import ROOT, WORK, Account, Answer, Subject
from declared import Declared
from translate import source

STACK = "signalbox-dry"


class Edition:
    """A running edition with the template's parameters."""

    def __init__(self, state: str) -> None:
        self.state = pathlib.Path(state)
        self.process = subprocess.Popen(
            [ROOT / ".build" / "local", "-root", ROOT, "-state", state, "-port", "0"], stdout=subprocess.DEVNULL,
            env=os.environ | {"QUIET": "1"},
        )
        while not (self.state / "stack.json").exists() or not (self.state / "demo.json").exists():
            if self.process.poll() is not None:
                raise SystemExit("the edition did not start")
            time.sleep(0.05)
        self.stack = json.loads((self.state / "stack.json").read_text())
        self.url = json.loads((self.state / "demo.json").read_text())["base_url"]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def environment(self) -> dict[str, str]:
        """Makes the contract suite use the engines as AWS."""
        return {f"AWS_ENDPOINT_URL_{service.upper()}": url for service, url in self.stack["endpoints"].items()} | {
            "AWS_ACCESS_KEY_ID": self.stack["access_key_id"], "AWS_SECRET_ACCESS_KEY": self.stack["secret_access_key"],
        }

    def client(self, service: str):
        return boto3.client(
            service, endpoint_url=self.stack["endpoints"][service], region_name="us-east-1",
            aws_access_key_id=self.stack["access_key_id"], aws_secret_access_key=self.stack["secret_access_key"],
        )


class Recorded:
    """A client with recorded answers; the engines answer the rest."""

    def __init__(self, standin: "StandIn", service: str, engine) -> None:
        self._standin, self._service, self._engine = standin, service, engine

    def __getattr__(self, operation: str):
        name = f"{self._service}.{operation}"

        def call(**arguments):
            record = getattr(self._standin, name.replace(".", "_"), None)
            answer = (record or getattr(self._engine, operation))(**arguments)
            lie = self._standin.lies.get(name)
            return lie(answer, arguments) if lie else answer

        return call

    def get_paginator(self, operation: str):
        if not hasattr(self._standin, f"{self._service}_{operation}"):
            return self._engine.get_paginator(operation)
        outer = self

        class Pages:
            def paginate(self, **arguments):
                yield getattr(outer, operation)(**arguments)

        return Pages()


class DrySubject(Subject):
    """A subject with the edition's address. A lie about "api" changes an answer."""

    def send(self, method: str, path: str, key: str = "", body: bytes | None = None, **headers: str) -> Answer:
        answer = super().send(method, path, key, body, **headers)
        lie = self.account.lies.get("api")
        return lie(answer, (method, path, key, body)) if lie else answer


class StandIn(Account):
    """AWS with one stack in it."""

    def __init__(self, edition: Edition) -> None:
        self.region, self.id, self.partition, self.caller = "us-east-1", "000000000000", "aws", "arn:aws:iam::000000000000:user/dry-run"
        self.edition, self.lies, self._clients = edition, {}, {}
        self.parameters = {n: str(p.get("Default", "")) for n, p in source()["Parameters"].items()} | {"Architecture": "x86_64"}
        self.physical: dict[str, str] = {}
        self.outputs = dict(edition.stack["outputs"])
        self.template = Declared(self._described())  # which sees the names that are added here
        for name, resource in self.template.expected.items():
            key = self.outputs.get(name + "Arn", "").rpartition("key/")[2]
            self.physical[name] = self.outputs.get(name + "Name") or key or f"{STACK}-{name}"
            if resource["Type"] == "AWS::SNS::Topic":
                self.physical[name] = f"arn:aws:sns:us-east-1:{self.id}:{STACK}-{name}"
        self.outputs = {n: self.template.resolve(o["Value"]) for n, o in self.template.outputs.items()}

    def _described(self) -> Subject:
        subject = Subject.__new__(Subject)
        subject.account, subject.name, subject.parameters, subject.physical = self, STACK, self.parameters, self.physical
        subject.id = f"arn:aws:cloudformation:us-east-1:{self.id}:stack/{STACK}/1"
        return subject

    def client(self, service: str):
        if service not in self._clients:
            engine = self.edition.client(service) if service in ("dynamodb", "s3", "kms") else None
            self._clients[service] = Recorded(self, service, engine)
        return self._clients[service]

    def subject(self) -> Subject:
        subject = DrySubject(self, STACK, self.edition.url, ["--local", str(self.edition.state)])
        subject.patience = 2
        return subject

    # ------------------------------------------------------------ right answers

    def cloudformation_describe_stacks(self, StackName: str) -> dict:
        return {"Stacks": [{
            "StackId": self._described().id, "StackStatus": "UPDATE_COMPLETE", "Tags": [],
            "Outputs": [{"OutputKey": k, "OutputValue": v} for k, v in self.outputs.items()],
            "Parameters": [{"ParameterKey": k, "ParameterValue": v} for k, v in self.parameters.items()],
        }]}

    def cloudformation_list_stack_resources(self, StackName: str) -> dict:
        return {"StackResourceSummaries": [
            {"LogicalResourceId": n, "PhysicalResourceId": p, "ResourceType": self.template.resources[n]["Type"], "ResourceStatus": "UPDATE_COMPLETE"}
            for n, p in self.physical.items()
        ]}

    def cloudformation_get_template(self, StackName: str, TemplateStage: str) -> dict:
        packaged = source()
        packaged["Globals"]["Function"]["CodeUri"] = "s3://artifacts/code"
        return {"TemplateBody": json.dumps(packaged)}

    def cloudformation_detect_stack_drift(self, StackName: str) -> dict:
        return {"StackDriftDetectionId": "1"}

    def cloudformation_describe_stack_drift_detection_status(self, StackDriftDetectionId: str) -> dict:
        return {"DetectionStatus": "DETECTION_COMPLETE"}

    def cloudformation_describe_stack_resource_drifts(self, StackName: str) -> dict:
        unsupported = ("AWS::IAM::Policy", "AWS::S3::BucketPolicy", "AWS::Lambda::Permission")
        return {"StackResourceDrifts": [
            {"LogicalResourceId": n, "StackResourceDriftStatus": "IN_SYNC"}
            for n, r in self.template.expected.items() if r["Type"] not in unsupported
        ]}

    def cloudwatch_get_metric_data(self, **_) -> dict:
        return {"MetricDataResults": [{"Values": [1.0]}]}

    def cloudcontrol_get_resource(self, TypeName: str, Identifier: str) -> dict:
        (properties,) = (p for kind, identifier, p in self.template.with_policies().values() if (kind, identifier) == (TypeName, Identifier))
        return {"ResourceDescription": {"Properties": json.dumps(properties)}}

    def logs_filter_log_events(self, logGroupName: str, startTime: int) -> dict:
        name = next(n for n, p in self.physical.items() if p == logGroupName).removesuffix("LogGroup")
        found = []
        if name == "Access":
            (stage,) = self.template.of("AWS::ApiGateway::Stage").values()
            found = [stage["AccessLogSetting"]["Format"]]
        elif (file := self.edition.state / "logs" / f"{name}Function.log").exists():
            found = file.read_text().splitlines()
        return {"events": [{"message": line} for line in found]}

    def lambda_get_function(self, FunctionName: str, Qualifier: str) -> dict:
        name = next(n for n, p in self.physical.items() if p == FunctionName)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(WORK / "code" / name / "bootstrap", "bootstrap")
        where = "data:application/zip;base64," + base64.b64encode(packed.getvalue()).decode()
        return {"Configuration": {"Architectures": ["x86_64"]}, "Code": {"Location": where}}
