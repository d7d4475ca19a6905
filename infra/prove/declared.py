"""Checks that the stack equals template.yaml and samconfig.toml.

Drift detection compares AWS with the deployed template, and only the properties in that
template. So the deployed template is first compared with ours.
"""

import json

from account import Subject
from checks import Differs, Failed, check, until
from deployed import PSEUDO, Deployed
from samtranslator.yaml_helper import yaml_parse
from stack import environments
from translate import source

DRIFT = 'CloudFormation User Guide, "Detect unmanaged configuration changes to stacks and resources with drift detection"'

# Drift detection reports these types. If it leaves out a resource of them, that is a fault.
COMPARED = {
    "AWS::ApiGateway::RestApi", "AWS::ApiGateway::Stage", "AWS::CloudWatch::Alarm", "AWS::DynamoDB::Table", "AWS::Events::Rule",
    "AWS::IAM::Role", "AWS::Lambda::Function", "AWS::Logs::LogGroup", "AWS::Logs::MetricFilter", "AWS::S3::Bucket", "AWS::SNS::Topic",
}

# The property with the policy, by type. Drift detection compares few of these policies.
POLICY = {
    "AWS::IAM::ManagedPolicy": "PolicyDocument", "AWS::KMS::Key": "KeyPolicy", "AWS::Logs::ResourcePolicy": "PolicyDocument",
    "AWS::S3::BucketPolicy": "PolicyDocument", "AWS::SNS::TopicPolicy": "PolicyDocument",
}


class Declared(Deployed):
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
    """The paths at which two values differ. A number equals its text."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            d for name in sorted(ours.keys() | theirs.keys())
            for d in differences(ours.get(name), theirs.get(name), f"{path}/{name}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [d for i, (a, b) in enumerate(zip(ours, theirs)) for d in differences(a, b, f"{path}/{i}")]
    same = ours == theirs or None not in (ours, theirs) and not isinstance(ours, (dict, list)) and str(ours).lower() == str(theirs).lower()
    return [] if same else [path]


def _packaged(value):
    """Without the parts that `sam build` and `sam deploy` change: the code's place, and metadata."""
    if isinstance(value, dict):
        return {k: _packaged(v) for k, v in value.items() if k not in ("CodeUri", "Metadata")}
    return [_packaged(v) for v in value] if isinstance(value, list) else value


@check("the deployed template is template.yaml, the code's place aside", "template.yaml")
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
    silent = [r for r in s.resources if states.get(r["LogicalResourceId"]) not in ("IN_SYNC", "MODIFIED", "DELETED")]
    drifted += [f"{r['LogicalResourceId']} not reported" for r in silent if r["ResourceType"] in COMPARED]
    opened = [r["LogicalResourceId"] for r in silent if r["ResourceType"] not in COMPARED | POLICY.keys() | {"AWS::IAM::Policy"}]
    seen = f"{len(s.resources) - len(silent)} in sync; NOT CHECKED: {', '.join(sorted(opened)) or 'none'}"
    if end["DetectionStatus"] == "DETECTION_FAILED":
        seen += f"; incomplete: {end.get('DetectionStatusReason', '')}"
    if drifted:
        raise Failed("; ".join(drifted) + "; " + seen)
    return seen


def canonical(value, name: str = ""):
    """A policy in a form in which equal policies are equal."""
    if isinstance(value, dict):
        return {k: canonical(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return sorted((canonical(v, "Sid") for v in value), key=lambda v: json.dumps(v, sort_keys=True))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if name in ("Sid", "Effect", "Version", "Id") else [text]


def wanted(template: Declared) -> dict[str, tuple]:
    """The policies of the template by logical id, each with its resource's type and properties. A role
    has several: those by name, its trust, and the managed ones."""
    found = {
        name: (kind, properties, properties[member])
        for kind, member in POLICY.items() for name, properties in template.of(kind).items()
    }
    attached = template.of("AWS::IAM::Policy").values()
    for name, role in template.of("AWS::IAM::Role").items():
        inline = role.get("Policies", []) + [p for p in attached if template.physical(name) in p["Roles"]]
        found[name] = "AWS::IAM::Role", role, {
            "trust": role["AssumeRolePolicyDocument"], "managed": role.get("ManagedPolicyArns", []),
            **{p["PolicyName"]: p["PolicyDocument"] for p in inline},
        }
    return found


def in_force(s: Subject, name: str, kind: str, properties: dict):
    """The policy that AWS has for a resource, in the form of wanted."""
    client, pages, physical = s.account.client, s.account.pages, s.physical.get(name, "")
    match kind:
        case "AWS::IAM::ManagedPolicy":
            version = client("iam").get_policy(PolicyArn=physical)["Policy"]["DefaultVersionId"]
            return client("iam").get_policy_version(PolicyArn=physical, VersionId=version)["PolicyVersion"]["Document"]
        case "AWS::IAM::Role":
            return {
                "trust": client("iam").get_role(RoleName=physical)["Role"]["AssumeRolePolicyDocument"],
                "managed": [p["PolicyArn"] for p in pages("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=physical)],
                **{policy: client("iam").get_role_policy(RoleName=physical, PolicyName=policy)["PolicyDocument"]
                   for policy in pages("iam", "list_role_policies", "PolicyNames", RoleName=physical)},
            }
        case "AWS::KMS::Key":
            return client("kms").get_key_policy(KeyId=physical, PolicyName="default")["Policy"]
        case "AWS::Logs::ResourcePolicy":
            found = pages("logs", "describe_resource_policies", "resourcePolicies")
            return next(p["policyDocument"] for p in found if p["policyName"] == physical)
        case "AWS::S3::BucketPolicy":
            return client("s3").get_bucket_policy(Bucket=properties["Bucket"])["Policy"]
    (topic,) = properties["Topics"]
    return client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]["Policy"]


@check("each policy of a key, bucket, topic, role and log group is the template's, and no role has more", "template.yaml; " + DRIFT)
def policies(s: Subject) -> str:
    wrong, count = [], 0
    for name, (kind, properties, policy) in wanted(declared(s)).items():
        count += len(policy) if kind == "AWS::IAM::Role" else 1
        try:
            want, have = (
                canonical(json.loads(p) if isinstance(p, str) else p) for p in (policy, in_force(s, name, kind, properties))
            )
            wrong += [f"{name} differs at {part}" for part in sorted(want | have) if want.get(part) != have.get(part)]
        except Exception as error:  # an unreadable policy is not the template's
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    if wrong:
        raise Failed("; ".join(wrong))
    return f"{count} policies"
