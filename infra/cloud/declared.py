"""Checks that the stack equals template.yaml and samconfig.toml.

Drift detection compares AWS with the deployed template, and only the properties in that
template. So the deployed template is first compared with ours. Drift detection is silent about
many types, so what gives access is read from each service.
"""

import functools
import hashlib
import io
import json
import os
import re
import subprocess
import urllib.request
import zipfile

from account import ROOT, WORK, Subject, code
from botocore.exceptions import ClientError
from checks import Differs, Failed, NotChecked, check, until
from stack import LONGEST, PSEUDO, Stack, environments, source, yaml_parse

# Drift detection reports every resource of these types. A missing one is a fault.
COMPARED = {
    "AWS::ApiGateway::RestApi", "AWS::ApiGateway::Stage", "AWS::CloudWatch::Alarm", "AWS::DynamoDB::Table", "AWS::Events::Rule",
    "AWS::IAM::Role", "AWS::Lambda::Function", "AWS::Logs::LogGroup", "AWS::Logs::MetricFilter", "AWS::S3::Bucket", "AWS::SNS::Topic",
}


class Declared(Stack):
    """The translated template, resolved with the stack's parameters and resources."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(template=subject.template, **subject.parameters)
        self.names, account = subject.physical, subject.account
        self.pseudo = PSEUDO | {
            "AWS::AccountId": account.id, "AWS::Partition": account.partition, "AWS::Region": account.region,
            "AWS::StackName": subject.name, "AWS::StackId": subject.id,
        }
        self.expected = {
            name: resource for name, resource in self.resources.items()
            if "Condition" not in resource or self.holds(resource["Condition"])
        }

    def physical(self, identifier: str) -> str:
        if not self.names.get(identifier):
            raise ValueError(f"{identifier} is not in the stack")
        return self.names[identifier]

    def of(self, kind: str) -> dict:
        """The properties of all resources of a type."""
        return {name: self.properties(name) for name, r in self.expected.items() if r["Type"] == kind}


def declared(subject: Subject) -> Declared:
    subject.declared = subject.declared or Declared(subject)
    return subject.declared


@check("the last operation on the stack succeeded, and CloudFormation does not remember the administrator's role",
       'CloudFormation User Guide, "Stack status codes"; CloudFormation API Reference, CreateChangeSet: RoleARN')
def status(s: Subject) -> str:
    if "/administer-" in s.role:
        raise Failed(f"CloudFormation remembers {s.role}: deploy a change under the service role (infra/operations/deploy.md, As an administrator)")
    if s.status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"):
        raise Failed(f"{s.status}: the stack may run an older version than the last deployment")
    return s.status


@check("the stack cannot be deleted, and its stack policy is the one of `make protect`; an unprotected stack DIFFERS if samconfig.toml does not name it, or as default",
       "infra/cloud/stack-policy.json; infra/operations/deploy.md, The first deployment")
def protection(s: Subject) -> str:
    found = s.account.client("cloudformation").get_stack_policy(StackName=s.id).get("StackPolicyBody")
    ours = (ROOT / "infra/cloud/stack-policy.json").read_text()
    policy = "none" if not found else "ours" if canonical(found) == canonical(ours) else "another"
    seen = f"termination protection: {'on' if s.undeletable else 'off'}; stack policy: {policy}"
    if s.undeletable and policy == "ours":
        return seen
    _, *named = environments()  # the first is default
    chosen = not s.undeletable and policy == "none" and s.name not in named
    raise (Differs if chosen else Failed)(f"{seen}: run make protect STACK={s.name}")


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
    if different := differences(_packaged(s.template or source()), _packaged(theirs)):
        raise Failed(f"{len(different)} differences: {', '.join(different[:10])}")
    return "the same"


@check("each parameter is the one in samconfig.toml; a stack that it does not name DIFFERS from the defaults", "samconfig.toml")
def parameters(s: Subject) -> str:
    want = {name: str(p.get("Default", "")) for name, p in source()["Parameters"].items()}
    known = s.deployment.parameters if s.deployment else environments().get(s.name)
    want |= known or {}
    if different := [f"{n} is {s.parameters.get(n)!r}, not {v!r}" for n, v in sorted(want.items()) if s.parameters.get(n) != v]:
        raise (Differs if known is None else Failed)(", ".join(different) + ". A line taken out of samconfig.toml changes nothing: write the value, or Name=\\\"\\\"")
    return f"{len(want)} parameters"


@check("no other stack of the account, in any region, has this name, or one that begins with it and a dash, or the other way round",
       "the paths of roles are global in an account; infra/operations/deploy.md, The first deployment")
def names(s: Subject) -> str:
    parts = s.name.split("-")
    paths = [f"/{s.name}/", f"/{s.name}-", *(f"/{'-'.join(parts[:n])}/" for n in range(1, len(parts)))]
    roles = [r["Path"] + r["RoleName"] for path in paths for r in s.account.pages("iam", "list_roles", "Roles", PathPrefix=path) if r["RoleName"] not in s.physical.values()]
    if roles or not re.fullmatch("[a-z](-?[a-z0-9])*", s.name) or len(s.name) > LONGEST:
        raise Failed(f"{s.name!r}, and roles of other stacks: {', '.join(roles) or 'none'}")
    return s.name


@check("AWS finds no difference from the deployed template",
       'CloudFormation User Guide, "Detect unmanaged configuration changes to stacks and resources with drift detection"')
def drift(s: Subject) -> str:
    cloudformation = s.account.client("cloudformation")
    begun = cloudformation.detect_stack_drift(StackName=s.id)["StackDriftDetectionId"]

    def ended() -> dict | None:
        now = cloudformation.describe_stack_drift_detection_status(StackDriftDetectionId=begun)
        return None if now["DetectionStatus"] == "DETECTION_IN_PROGRESS" else now

    end = until(s.patience, ended)
    if not end:
        raise Failed("the drift detection did not end")
    page = cloudformation.describe_stack_resource_drifts(StackName=s.id)
    found = page["StackResourceDrifts"]
    while "NextToken" in page:
        page = cloudformation.describe_stack_resource_drifts(StackName=s.id, NextToken=page["NextToken"])
        found += page["StackResourceDrifts"]
    states = {d["LogicalResourceId"]: d["StackResourceDriftStatus"] for d in found}
    drifted = [
        f"{d['LogicalResourceId']} {d['StackResourceDriftStatus']} " + " ".join(p["PropertyPath"] for p in d.get("PropertyDifferences", []))
        for d in found if d["StackResourceDriftStatus"] in ("MODIFIED", "DELETED")
    ]
    silent = [r for r in s.resources if states.get(r["LogicalResourceId"]) not in ("IN_SYNC", "MODIFIED", "DELETED")]
    drifted += [f"{r['LogicalResourceId']} not reported" for r in silent if r["ResourceType"] in COMPARED]
    opened = [r["LogicalResourceId"] for r in silent if r["ResourceType"] not in READ | COMPARED]
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


# ---- What gives access or copies, as the service has it and as the template says. Each function returns both,
# (have, want), for one resource of the type.


def _role(s: Subject, name: str, want: dict):
    iam, role = s.account.client("iam"), s.physical[name]
    there = iam.get_role(RoleName=role)["Role"]
    inline = s.account.pages("iam", "list_role_policies", "PolicyNames", RoleName=role)
    return {
        "Trust": there["AssumeRolePolicyDocument"], "Path": there["Path"],
        "Boundary": there.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn", ""),
        "Attached": [p["PolicyArn"] for p in s.account.pages("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=role)],
        "Policies": {p: iam.get_role_policy(RoleName=role, PolicyName=p)["PolicyDocument"] for p in inline},
    }, {
        "Trust": want["AssumeRolePolicyDocument"], "Path": want.get("Path", "/"), "Boundary": want.get("PermissionsBoundary", ""),
        "Attached": want.get("ManagedPolicyArns", []),
        "Policies": {p["PolicyName"]: p["PolicyDocument"] for p in declared(s).role(name)["Policies"]},
    }


def _managed(s: Subject, name: str, want: dict):
    """The router's policy, and the roles that have it."""
    iam, arn = s.account.client("iam"), s.physical[name]
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    roles = [r["RoleName"] for r in s.account.pages("iam", "list_entities_for_policy", "PolicyRoles", PolicyArn=arn)]
    router = s.parameters["RouterRoleArn"].rpartition("/")[2]
    return {
        "Document": iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"], "Roles": [r for r in roles if r != router],
    }, {"Document": want["PolicyDocument"], "Roles": []}


def _key(s: Subject, name: str, want: dict):
    kms, key = s.account.client("kms"), s.physical[name]
    there, rotation = kms.describe_key(KeyId=key)["KeyMetadata"], kms.get_key_rotation_status(KeyId=key)
    # DynamoDB grants itself the storage key. The sealing key's policy has no kms:CreateGrant.
    grants = [g["GranteePrincipal"] for g in s.account.pages("kms", "list_grants", "Grants", KeyId=key)]
    return {
        "Policy": kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"], "State": there["KeyState"], "MultiRegion": there.get("MultiRegion", False),
        "Rotates": rotation["KeyRotationEnabled"], "Days": rotation.get("RotationPeriodInDays", 365),
        "Grants": [g for g in grants if not g.startswith("dynamodb.")],
    }, {
        "Policy": want["KeyPolicy"], "State": "Enabled", "MultiRegion": want.get("MultiRegion", False),
        "Rotates": want["EnableKeyRotation"], "Days": want["RotationPeriodInDays"], "Grants": [],
    }


def maybe(ask, member: str):
    """A member of the response, or None if there is no such configuration."""
    try:
        return ask().get(member) or None
    except ClientError as error:
        if code(error) not in ("ResourceNotFoundException", "PolicyNotFoundException", "ReplicationConfigurationNotFoundError"):
            raise
        return None


# Nobody else gets a copy, and nothing expires or is switched: drift detection compares only what a template sets.


def _table(s: Subject, name: str, want: dict):
    dynamodb, table = s.account.client("dynamodb"), s.physical[name]
    there = dynamodb.describe_table(TableName=table)["Table"]
    return {
        "Policy": maybe(lambda: dynamodb.get_resource_policy(ResourceArn=there["TableArn"]), "Policy"), "Stream": there.get("StreamSpecification"),
        "Replicas": there.get("Replicas") or None,
        "Kinesis": maybe(lambda: dynamodb.describe_kinesis_streaming_destination(TableName=table), "KinesisDataStreamDestinations"),
        "Expires": "TimeToLiveSpecification" not in want and dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["TimeToLiveStatus"].startswith("ENABL") or None,
    }, dict.fromkeys(("Policy", "Stream", "Replicas", "Kinesis", "Expires"))


def _bucket(s: Subject, name: str, want: dict):
    notified = {n: v for n, v in s.s3.get_bucket_notification_configuration(Bucket=s.bucket).items() if n != "ResponseMetadata"}
    return {
        "Replication": maybe(lambda: s.s3.get_bucket_replication(Bucket=s.bucket), "ReplicationConfiguration"), "Notifications": notified or None,
        "Versioning": s.s3.get_bucket_versioning(Bucket=s.bucket).get("Status"),
    }, {"Replication": None, "Notifications": None, "Versioning": want.get("VersioningConfiguration", {}).get("Status")}


def _callers(s: Subject, name: str, want: dict):
    """Who may call the function: its policies, with its alias and without, and its URLs."""
    client, function = s.account.client("lambda"), s.physical[name]

    def policy(**of) -> list:
        return json.loads(maybe(lambda: client.get_policy(FunctionName=function, **of), "Policy") or '{"Statement": []}')["Statement"]

    versions = [v["Version"] for v in s.account.pages("lambda", "list_versions_by_function", "Versions", FunctionName=function)]
    granted = {json.dumps({k: v for k, v in p.items() if k != "Sid"}) for of in ({}, *({"Qualifier": q} for q in ("live", *versions))) for p in policy(**of)}
    live = s.physical[name + "Aliaslive"]
    permitted = [p for p in declared(s).of("AWS::Lambda::Permission").values() if p["FunctionName"] == live]
    return {
        "Policy": [json.loads(p) for p in sorted(granted)],
        "Urls": [u["FunctionUrl"] for u in s.account.pages("lambda", "list_function_url_configs", "FunctionUrlConfigs", FunctionName=function)],
    }, {
        "Policy": [{
            "Effect": "Allow", "Principal": {"Service": p["Principal"]}, "Action": p["Action"], "Resource": live,
            "Condition": {"ArnLike": {"AWS:SourceArn": p["SourceArn"]}},
        } for p in permitted],
        "Urls": [],
    }


READERS = {
    "AWS::IAM::Role": _role,
    "AWS::IAM::ManagedPolicy": _managed,
    "AWS::KMS::Key": _key,
    "AWS::DynamoDB::Table": _table,
    "AWS::S3::Bucket": _bucket,
    "AWS::Lambda::Function": _callers,
    "AWS::S3::BucketPolicy": lambda s, name, want: (s.s3.get_bucket_policy(Bucket=want["Bucket"])["Policy"], want["PolicyDocument"]),
    "AWS::SNS::TopicPolicy": lambda s, name, want: (
        s.account.client("sns").get_topic_attributes(TopicArn=want["Topics"][0])["Attributes"]["Policy"], want["PolicyDocument"]),
    "AWS::Events::Rule": lambda s, name, want: (s.account.client("events").describe_rule(Name=s.physical[name])["State"], want.get("State", "ENABLED")),
    "AWS::Logs::LogGroup": lambda s, name, want: (
        s.account.pages("logs", "describe_subscription_filters", "subscriptionFilters", logGroupName=s.physical[name]), []),
    "AWS::Logs::ResourcePolicy": lambda s, name, want: (
        [p["policyDocument"] for p in s.account.pages("logs", "describe_resource_policies", "resourcePolicies") if p["policyName"] == want["PolicyName"]],
        [want["PolicyDocument"]]),
}
READ = {*READERS, "AWS::IAM::Policy", "AWS::Lambda::Permission", "AWS::Lambda::Alias", "AWS::Lambda::Version"}


@check("whatever may use a key, table, bucket, topic, role, log group or function is what the template says, and nobody else gets a copy",
       "template.yaml; the services' own operations, because drift detection is silent about most policies")
def access(s: Subject) -> str:
    wrong, count = [], 0
    for kind, read in READERS.items():
        for name, properties in declared(s).of(kind).items():
            count += 1
            try:
                have, want = map(canonical, read(s, name, properties))
                wrong += [name + path for path in differences(want, have)]
            except Exception as error:  # an unreadable policy is not the template's
                wrong.append(f"{name}: {type(error).__name__}: {error}")
    if wrong:
        raise Failed("; ".join(wrong))
    return f"{count} resources"


@check("each alias sends all requests to one version, which is built from this repository and configured as the template says",
       "AWS Lambda API Reference, GetFunction, GetAlias")
def functions(s: Subject) -> str:
    client, wrong, unbuilt, found = s.account.client("lambda"), [], [], declared(s).of("AWS::Lambda::Function")
    for name, want in found.items():
        alias = client.get_alias(FunctionName=s.physical[name], Name="live")
        if alias.get("RoutingConfig", {}).get("AdditionalVersionWeights"):
            wrong.append(f"{name}: its alias sends a part of the requests elsewhere")
        if f"{declared(s).named(name + '.Arn')}:{alias['FunctionVersion']}" not in s.physical.values():
            wrong.append(f"{name}: its alias is at version {alias['FunctionVersion']}, which is not the stack's")
        there = client.get_function(FunctionName=s.physical[name], Qualifier="live")
        have = there["Configuration"]
        compared = ("Role", "Handler", "Runtime", "Architectures", "Timeout", "MemorySize")
        both = ({n: f.get(n) for n in compared} | {"Layers": f.get("Layers", []), "Environment": f["Environment"]["Variables"]} for f in (want, have))
        wrong += [name + path for path in differences(*both)]
        with urllib.request.urlopen(there["Code"]["Location"]) as response:
            deployed = zipfile.ZipFile(io.BytesIO(response.read())).read("bootstrap")
        go = toolchain(name, deployed)
        try:
            if hashlib.sha256(deployed).digest() != built(name, s.parameters["Architecture"], go):
                wrong.append(f"{name} is not what this commit and {go or 'any Go'} build")
        except subprocess.CalledProcessError as error:
            unbuilt.append(f"{name} was built with {go}: {error.stderr.decode()[-200:]}")
    if wrong or unbuilt:
        raise (Failed if wrong else NotChecked)("; ".join(wrong + unbuilt))
    return f"{len(found)} functions on {s.parameters['Architecture']}, byte for byte"


def toolchain(function: str, program: bytes) -> str:
    """The release of Go that built a program, or "". Other releases build other bytes."""
    file = WORK / "code" / f"{function}-deployed"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(program)
    said = subprocess.run(["go", "version", file], capture_output=True, text=True, check=False).stdout
    return said.split()[-1] if re.search(r": go1(\.\d+)+\n$", said) else ""


@functools.cache
def built(function: str, architecture: str, go: str) -> bytes:
    """The digest of the program that `sam build` makes with this release of Go."""
    folder = WORK / "code" / function
    folder.mkdir(parents=True, exist_ok=True)
    goarch = {"arm64": "arm64", "x86_64": "amd64"}[architecture]
    subprocess.run(
        ["make", "--silent", "-C", ROOT, f"build-{function}", f"ARTIFACTS_DIR={folder}", f"SIGNALBOX_GOARCH={goarch}"], check=True, capture_output=True,
        env=os.environ | ({"GOTOOLCHAIN": go} if go else {}),
    )
    return hashlib.sha256((folder / "bootstrap").read_bytes()).digest()
