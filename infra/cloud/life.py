"""The stack of `make prove`: deployed with the SAM CLI, changed, and removed by its tag."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time

from account import ROOT, WORK, Account, Subject, code, remove_objects
from behaviour import TYPES, expect, refused
from botocore.exceptions import ClientError
from checks import CHANGED, check, until

TAG = "signalbox:prove"  # CloudFormation copies a stack's tags to its resources

PLAN = """make prove, account {account}, region {region}:

It makes the stack {name}, the bucket {bucket} and the queue {name}-prove{role}, sends about 10,000 requests, deploys three
times (the third is a function that crashes) and removes everything else, also after Ctrl-C. Two KMS keys stay for 7 days and
the system backups of the tables for 35 days, both free of charge. It takes about 45 minutes and costs less than 3 dollars.
"""

# A function that takes a request from Lambda and ends.
CRASH = """#!/bin/sh
curl -s "http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation/next" >/dev/null
exit 1
"""

say = lambda text: print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)  # noqa: E731


class Deployment:
    template = None  # what is deployed, if that is not template.yaml
    role = ""  # the service role, if there is one
    gateway = "Existing"  # the region's logging role for API Gateway
    architectures = ["arm64", "x86_64"]  # of the first deployment and of the second

    def __init__(self, account: Account, name: str, tags: dict[str, str], boundary: str = "") -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,19}", name):
            raise SystemExit(f"cloud: {name!r}: at most 20 lower-case letters, digits and dashes, the first a letter")
        self.account, self.name, self.tags, self.boundary = account, name, tags | {TAG: name}, boundary
        self.bucket = f"{name}-{account.id}-{account.region}"
        self.parameters: dict[str, str] = {}

    def agree(self, yes: bool) -> None:
        """Refuses a stack that exists, shows the plan and asks."""
        if self.account.stack(self.name):
            raise SystemExit(f"cloud: stack {self.name} exists: choose another name, or run make prove-clean STACK={self.name} if prove made it")
        if not self.account.client("apigateway").get_account().get("cloudwatchRoleArn"):
            self.gateway = "Create"
        role = ", and the region's logging role for API Gateway, which stays" if self.gateway == "Create" else ""
        print(PLAN.format(account=self.account.id, region=self.account.region, name=self.name, bucket=self.bucket, role=role), file=sys.stderr)
        if not yes and input("Start? Type the name of the stack: ").strip() != self.name:
            raise SystemExit("cloud: not started")

    def folder(self, architecture: str):
        return WORK / f"build-{architecture}"

    def sam(self, *arguments: str) -> subprocess.CompletedProcess:
        say("sam " + " ".join(arguments))
        WORK.mkdir(parents=True, exist_ok=True)
        config = WORK / "samconfig.toml"
        config.write_text("version = 0.1\n")  # the project's samconfig.toml names other stacks
        # A new session, because Ctrl-C must not stop a deployment.
        return subprocess.run(
            ["sam", *arguments, "--config-file", config], cwd=ROOT, capture_output=True, text=True, check=False, start_new_session=True,
            env=os.environ | {"SAM_CLI_TELEMETRY": "0", "AWS_REGION": self.account.region, "AWS_DEFAULT_REGION": self.account.region},
        )

    def prepare(self) -> None:
        """Builds for both architectures, and makes the bucket for SAM's uploads."""
        for architecture in dict.fromkeys(self.architectures):
            _succeed(self.sam(
                "build", "--build-in-source", "--template", "template.yaml", "--build-dir", str(self.folder(architecture)),
                "--parameter-overrides", f"Architecture={architecture}",
            ))
        s3, region = self.account.client("s3"), self.account.region
        elsewhere = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        s3.create_bucket(Bucket=self.bucket, **elsewhere)
        s3.put_bucket_tagging(Bucket=self.bucket, Tagging={"TagSet": [{"Key": k, "Value": v} for k, v in self.tags.items()]})

    def deploy(self, stage: str) -> Subject:
        architecture = self.architectures[stage == CHANGED]
        self.parameters = {
            "Architecture": architecture, "DeploymentPreference": "AllAtOnce", "GatewayLoggingRole": self.gateway,
            "LogRetentionDays": "1", "SystemLogLevel": "INFO",
        }
        if self.boundary:
            self.parameters["PermissionsBoundaryArn"] = self.boundary
        if stage == CHANGED:
            self.parameters |= {"FilesVersioning": "Enabled", "Firewall": "On", "ReadsPerSecond": "5"}
        if role := self.account.role():  # the sealing check opens stored keys as the router does
            self.parameters["RouterRoleArn"] = role
        _succeed(self.update(self.folder(architecture), self.parameters))
        return self.subject()

    def subject(self) -> Subject:
        subject = Subject(self.account, self.name)
        subject.deployment, subject.template = self, self.template
        return subject

    def update(self, folder, parameters: dict[str, str]) -> subprocess.CompletedProcess:
        return self.sam(
            "deploy", "--stack-name", self.name, "--template-file", str(folder / "template.yaml"), "--s3-bucket", self.bucket,
            "--s3-prefix", self.name, "--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-fail-on-empty-changeset",
            "--tags", *(f"{k}={v}" for k, v in self.tags.items()), *(["--role-arn", self.role] if self.role else []), "--parameter-overrides", *(f"{k}={v}" for k, v in parameters.items()),
        )


def _succeed(done: subprocess.CompletedProcess) -> None:
    if done.returncode:
        raise SystemExit(f"cloud: {' '.join(map(str, done.args[:2]))}: {done.stdout}{done.stderr}")


@check("a version that crashes gets a part of the requests, its callers get 500 in our envelope, and its alarm rolls it back",
       'AWS SAM Developer Guide, "Deploying serverless applications gradually"; ' + TYPES + ": INTEGRATION_FAILURE", CHANGED, late=True)
def canary(s: Subject) -> str:
    d = s.deployment
    shutil.copytree(d.folder(s.parameters["Architecture"]), d.folder("crash"), dirs_exist_ok=True)
    (d.folder("crash") / "GetSyncJobFunction" / "bootstrap").write_text(CRASH)

    def version() -> str:
        return s.account.client("lambda").get_alias(FunctionName=s.physical["GetSyncJobFunction"], Name="live")["FunctionVersion"]

    before = version()
    update = threading.Thread(target=d.update, args=(d.folder("crash"), d.parameters | {"DeploymentPreference": "Canary10Percent5Minutes"}))
    update.start()
    responses = []
    while update.is_alive():
        responses.append(s.get_job())
        time.sleep(0.25)
    return judge_canary(responses, s.account.stack(d.name)["StackStatus"], before, version())


def judge_canary(responses: list, status: str, before: str, after: str) -> str:
    """The finding about a canary from its responses, and from the versions before and after."""
    crashed = [i for i, a in enumerate(responses) if a.status not in (200, 429)]
    during = responses[crashed[0]:crashed[-1] + 1] if crashed else []
    share = len(crashed) / max(1, len(during))
    seen = f"{status}, alias at version {after}, before {before}; {len(crashed)} of {len(during)} answers from the new version"
    expect(status == "UPDATE_ROLLBACK_COMPLETE" and before == after, seen)
    expect(len(during) > 50 and 0.04 < share < 0.2, seen)
    for i in crashed:
        refused(responses[i], 500)
    return seen


class Cleaner:
    """Deletes everything that carries prove's tag with the stack's name. It needs no record."""

    def __init__(self, account: Account, name: str) -> None:
        self.account, self.name = account, name

    def clean(self) -> None:
        self._delete_stack()
        arns = [r["ResourceARN"] for r in self.account.pages(
            "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=[{"Key": TAG, "Values": [self.name]}]
        )]
        problems = []
        # The keys go last: DynamoDB deletes a table only while its key can be used.
        s3, logs, sqs = (self.account.client(service) for service in ("s3", "logs", "sqs"))
        for service, remove in (
            ("kms", self._revive_key), ("dynamodb", self._remove_table),
            ("s3", lambda name: (remove_objects(s3, name), s3.delete_bucket(Bucket=name))),
            ("logs", lambda name: logs.delete_log_group(logGroupName=name.removeprefix("log-group:").removesuffix(":*"))),
            ("sqs", lambda name: sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])),
            ("kms", lambda name: self.account.client("kms").schedule_key_deletion(KeyId=name.removeprefix("key/"), PendingWindowInDays=7)),
        ):
            for arn in arns:
                parts = arn.split(":", 5)
                if parts[2] != service:
                    continue
                try:
                    remove(parts[5])
                except ClientError as error:
                    if not re.search("NotFound|NoSuchBucket|NonExistentQueue|QueueDoesNotExist", code(error)):
                        problems.append(f"{arn}: {error}")
        if problems:
            raise SystemExit(f"cloud: not everything was removed, run make prove-clean STACK={self.name}: " + "; ".join(problems))
        say(f"removed: everything tagged {TAG}={self.name}. Keys stay for 7 days, system backups of the tables for 35, both free of charge")

    def _delete_stack(self) -> None:
        """Deletes the stack once no operation runs on it, and waits."""
        stack = self.account.stack(self.name)
        if stack is None:
            return
        # A stack without resources has no tags yet.
        if stack["StackStatus"] != "REVIEW_IN_PROGRESS" and {"Key": TAG, "Value": self.name} not in stack.get("Tags", []):
            raise SystemExit(f"cloud: stack {self.name} has no tag {TAG}={self.name}: prove did not make it")

        def status() -> str:
            now = self.account.stack(stack["StackId"])
            return now["StackStatus"] if now else "DELETE_COMPLETE"

        until(2400, lambda: not re.fullmatch(r"(?!CREATE_|REVIEW_)\w+_IN_PROGRESS", status()))
        say(f"deleting stack {self.name}")
        self.account.client("cloudformation").delete_stack(StackName=stack["StackId"])
        until(2400, lambda: re.fullmatch("DELETE_(COMPLETE|FAILED)", status()))
        if status() != "DELETE_COMPLETE":
            raise SystemExit(f"cloud: stack {self.name} is {status()}: run make prove-clean STACK={self.name}")

    def _revive_key(self, resource: str) -> None:
        kms, key = self.account.client("kms"), resource.removeprefix("key/")
        state = kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"]
        if state == "PendingDeletion":
            kms.cancel_key_deletion(KeyId=key)
        if state != "Enabled":
            kms.enable_key(KeyId=key)

    def _remove_table(self, resource: str) -> None:
        db, name = self.account.client("dynamodb"), resource.removeprefix("table/")
        say(f"deleting table {name}")
        if db.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
            db.update_table(TableName=name, DeletionProtectionEnabled=False)
            until(600, lambda: db.describe_table(TableName=name)["Table"]["TableStatus"] == "ACTIVE")
        db.delete_table(TableName=name)
        db.get_waiter("table_not_exists").wait(TableName=name)
