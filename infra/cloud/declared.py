"""Checks that the stack equals template.yaml and samconfig.toml.

Drift detection compares AWS with the deployed template, and only the properties in that
template. So the deployed template is first compared with ours.
"""

import json

from account import Subject
from checks import Differs, Failed, check, until
from samtranslator.yaml_helper import yaml_parse
from stack import PSEUDO, Stack, environments
from translate import source

DRIFT = 'CloudFormation User Guide, "Detect unmanaged configuration changes to stacks and resources with drift detection"'

# Drift detection reports every resource of these types. A missing one is a fault.
COMPARED = {
    "AWS::ApiGateway::RestApi", "AWS::ApiGateway::Stage", "AWS::CloudWatch::Alarm", "AWS::DynamoDB::Table", "AWS::Events::Rule",
    "AWS::IAM::Role", "AWS::Lambda::Function", "AWS::Logs::LogGroup", "AWS::Logs::MetricFilter", "AWS::S3::Bucket", "AWS::SNS::Topic",
}

# The properties with policies, by the type that Cloud Control reads. Drift detection compares few of
# these policies.
POLICIES = {
    "AWS::IAM::ManagedPolicy": ["PolicyDocument"],
    "AWS::IAM::Role": ["AssumeRolePolicyDocument", "ManagedPolicyArns", "Policies"],
    "AWS::KMS::Key": ["KeyPolicy"],
    "AWS::Logs::ResourcePolicy": ["PolicyDocument"],
    "AWS::S3::BucketPolicy": ["PolicyDocument"],
    "AWS::SNS::TopicInlinePolicy": ["PolicyDocument"],  # Cloud Control cannot read a TopicPolicy
}


class Declared(Stack):
    """The translated template, resolved with the stack's parameters and resources."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(**subject.parameters)
        self.names, account = subject.physical, subject.account
        self.pseudo = PSEUDO | {
            "AWS::AccountId": account.id, "AWS::Partition": account.partition, "AWS::Region": account.region,
            "AWS::StackName": subject.name, "AWS::StackId": subject.id,
        }
        # The resources that the stack must have.
        self.expected = {
            name: resource for name, resource in self.resources.items()
            if "Condition" not in resource or self._holds(resource["Condition"])
        }

    def physical(self, identifier: str) -> str:
        if not self.names.get(identifier):
            raise ValueError(f"{identifier} is not in the stack")
        return self.names[identifier]

    def of(self, kind: str) -> dict:
        """The properties of all resources of a type."""
        return {name: self.properties(name) for name, r in self.expected.items() if r["Type"] == kind}

    def with_policies(self) -> dict[str, tuple[str, str, dict]]:
        """The resources with policies: type and identifier for Cloud Control, and the properties."""
        found = {n: (kind, self.physical(n), p) for kind in POLICIES for n, p in self.of(kind).items()}
        found |= {n: ("AWS::IAM::Role", self.physical(n), self.role(n)) for n in self.of("AWS::IAM::Role")}
        found |= {n: ("AWS::S3::BucketPolicy", p["Bucket"], p) for n, p in self.of("AWS::S3::BucketPolicy").items()}
        found |= {n: ("AWS::SNS::TopicInlinePolicy", topic, p) for n, p in self.of("AWS::SNS::TopicPolicy").items() for topic in p["Topics"]}
        return found


def declared(subject: Subject) -> Declared:
    if not hasattr(subject, "declared"):
        subject.declared = Declared(subject)
    return subject.declared


@check("the last operation on the stack succeeded", 'CloudFormation User Guide, "Stack status codes"')
def status(s: Subject) -> str:
    if s.status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"):
        raise Failed(f"{s.status}: the stack may run an older version than the last deployment")
    return s.status


def differences(ours, theirs, path: str = "") -> list[str]:
    """The paths at which two values differ. A number or a boolean equals its text."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            d for name in sorted(ours.keys() | theirs.keys())
            for d in differences(ours.get(name), theirs.get(name), f"{path}/{name}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [d for i, (a, b) in enumerate(zip(ours, theirs)) for d in differences(a, b, f"{path}/{i}")]
    ours, theirs = (v if v is None or isinstance(v, str) else json.dumps(v) for v in (ours, theirs))
    return [] if ours == theirs else [path]


def _packaged(value):
    """Without the parts that `sam build` and `sam deploy` change: the code's location and metadata."""
    if isinstance(value, dict):
        return {k: _packaged(v) for k, v in value.items() if k not in ("CodeUri", "Metadata")}
    return [_packaged(v) for v in value] if isinstance(value, list) else value


@check("the deployed template is template.yaml, except for the code's location", "template.yaml")
def template(s: Subject) -> str:
    theirs = s.account.client("cloudformation").get_template(StackName=s.id, TemplateStage="Original")["TemplateBody"]
    theirs = yaml_parse(theirs) if isinstance(theirs, str) else theirs
    if different := differences(_packaged(source()), _packaged(theirs)):
        raise Failed(f"{len(different)} differences: {', '.join(different[:10])}")
    return "the same"


@check("each parameter is the one in samconfig.toml, or the default", "samconfig.toml")
def parameters(s: Subject) -> str:
    want = {name: str(p.get("Default", "")) for name, p in source()["Parameters"].items()}
    want |= s.deployment.parameters if s.deployment else environments().get(s.name, {})
    if different := [f"{n} is {s.parameters.get(n)!r}, not {v!r}" for n, v in sorted(want.items()) if s.parameters.get(n) != v]:
        raise Differs(", ".join(different))
    return f"{len(want)} parameters"


@check("AWS finds no difference from the deployed template", DRIFT)
def drift(s: Subject) -> str:
    cloudformation = s.account.client("cloudformation")
    begun = cloudformation.detect_stack_drift(StackName=s.id)["StackDriftDetectionId"]

    def ended() -> dict | None:
        now = cloudformation.describe_stack_drift_detection_status(StackDriftDetectionId=begun)
        return None if now["DetectionStatus"] == "DETECTION_IN_PROGRESS" else now

    end = until(s.patience, ended)
    if not end:
        raise Failed("the drift detection did not end")
    found, more = [], {}
    while True:
        page = cloudformation.describe_stack_resource_drifts(StackName=s.id, **more)
        found += page["StackResourceDrifts"]
        if not (token := page.get("NextToken")):
            break
        more = {"NextToken": token}
    states = {d["LogicalResourceId"]: d["StackResourceDriftStatus"] for d in found}
    drifted = [
        f"{d['LogicalResourceId']} {d['StackResourceDriftStatus']} " + " ".join(p["PropertyPath"] for p in d.get("PropertyDifferences", []))
        for d in found if d["StackResourceDriftStatus"] in ("MODIFIED", "DELETED")
    ]
    policed = declared(s).with_policies()
    silent = [r for r in s.resources if states.get(r["LogicalResourceId"]) not in ("IN_SYNC", "MODIFIED", "DELETED")]
    drifted += [f"{r['LogicalResourceId']} not reported" for r in silent if r["ResourceType"] in COMPARED]
    opened = [r["LogicalResourceId"] for r in silent if r["LogicalResourceId"] not in policed and r["ResourceType"] not in COMPARED | {"AWS::IAM::Policy"}]
    seen = f"{len(s.resources) - len(silent)} in sync; NOT CHECKED: {', '.join(sorted(opened)) or 'none'}"
    if end["DetectionStatus"] == "DETECTION_FAILED":
        seen += f"; incomplete: {end.get('DetectionStatusReason', '')}"
    if drifted:
        raise Failed("; ".join(drifted) + "; " + seen)
    return seen


def canonical(value, name: str = ""):
    """A policy in a form in which equal policies are equal."""
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    if isinstance(value, dict):
        return {k: canonical(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return sorted((canonical(v, "Sid") for v in value), key=lambda v: json.dumps(v, sort_keys=True))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if name in ("Sid", "Effect", "Version", "Id") else [text]


@check("each policy of a key, bucket, topic, role and log group is the template's, and no role has more",
       "template.yaml; Cloud Control API Reference, GetResource; " + DRIFT)
def policies(s: Subject) -> str:
    template, wrong = declared(s), []
    found = template.with_policies()
    for name, (kind, identifier, properties) in found.items():
        try:
            read = s.account.client("cloudcontrol").get_resource(TypeName=kind, Identifier=identifier)["ResourceDescription"]
            want, have = (canonical({m: p.get(m, []) for m in POLICIES[kind]}) for p in (properties, json.loads(read["Properties"])))
            wrong += [name + path for path in differences(want, have)]
        except Exception as error:  # an unreadable policy is not the template's
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    if wrong:
        raise Failed("; ".join(wrong))
    return f"the policies of {len(found)} resources"
