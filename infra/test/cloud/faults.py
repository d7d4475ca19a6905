"""A fault for each check of a stack in use: a change behind the stack's back, which rehearsal.py makes on an engine, or
another expectation of it.

To add one, add a row: the check, what is changed, how, how it is changed back, and what the check must see. One
change for each response that a check reads.
"""

import base64
import json
import time
from unittest import mock

import declared
from account import MARKER, ROOT, Response, Subject
from stack import yaml_parse

# A server without TLS, and a suite that fails by itself on an engine.
WITHOUT_FAULT = {"tls", "contract"}
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
MORE = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})


def aws(service: str, operation: str, **arguments):
    """A call. Strings that begin with $ are physical ids; a function gets the result of the change."""

    def call(s: Subject, made=None):
        given = {n: a(s, made) if callable(a) else s.physical[a[1:]] if isinstance(a, str) and a.startswith("$") else a for n, a in arguments.items()}
        return getattr(s.account.client(service), operation)(**given)

    return call


def patched(target, name: str, new):
    patch = mock.patch.object(target, name, new)
    patch.start()
    return patch


def unpatch(_, patch) -> None:
    patch.stop()


def live(s: Subject, **alias):
    return s.account.client("lambda").update_alias(FunctionName=s.physical["CreateByokKeyFunction"], Name="live", **alias)


def another_version(s: Subject) -> str:
    """Publishes a changed version, and moves the alias to it. Returns the version before."""
    client, function = s.account.client("lambda"), s.physical["CreateByokKeyFunction"]
    before = client.get_alias(FunctionName=function, Name="live")["FunctionVersion"]
    client.update_function_configuration(FunctionName=function, Timeout=1)
    live(s, FunctionVersion=client.publish_version(FunctionName=function)["Version"])
    return before


def part_elsewhere(s: Subject) -> None:
    client, function = s.account.client("lambda"), s.physical["CreateByokKeyFunction"]
    other = client.publish_version(FunctionName=function, Description="another")["Version"]
    live(s, RoutingConfig={"AdditionalVersionWeights": {other: 0.5}})


def line(group: str, text: str):
    def write(s: Subject) -> None:
        logs, stream = s.account.client("logs"), f"fault-{time.time_ns()}"
        logs.create_log_stream(logGroupName=s.physical[group], logStreamName=stream)
        logs.put_log_events(logGroupName=s.physical[group], logStreamName=stream, logEvents=[{"timestamp": int(time.time() * 1000) + 5000, "message": text}])
        return stream

    def remove(s: Subject, stream: str) -> None:
        s.account.client("logs").delete_log_stream(logGroupName=s.physical[group], logStreamName=stream)

    return write, remove


def counted(value: float):
    return lambda s: s.account.client("cloudwatch").put_metric_data(
        Namespace=f"Signalbox/{s.name}", MetricData=[{"MetricName": "RateLimited", "Value": value}])


HIDDEN = "x" + base64.b64encode(f"a sk-{MARKER}-AbCd".encode()).decode()


def expecting(old: str, new: str):
    """The repository has another template than the one that was deployed."""
    return lambda s: patched(s, "template", json.loads(json.dumps(s.template).replace(old, new)))


def failing(body: str) -> str:
    """With an alarm that the engine refuses."""
    template = yaml_parse(body)
    template["Resources"]["Refused"] = {"Type": "AWS::CloudWatch::Alarm", "DependsOn": "AccessTable", "Properties": {
        "ComparisonOperator": "GreaterThanThreshold", "EvaluationPeriods": 1, "Threshold": 1, "Metrics": [{"Id": "m", "Expression": "1"}]}}
    return json.dumps(template)


# What `access` must see, all made at once: it compares each document apart from the others. Undone is what a later step would meet.
STRANGERS = [
    ("a grant on the sealing key", "SealingKey/Grants", aws("kms", "create_grant", KeyId="$SealingKey", GranteePrincipal="arn:aws:iam::000000000000:role/stranger", Operations=["Decrypt"])),
    ("the sealing key opened to all", "SealingKey/Policy", aws("kms", "put_key_policy", KeyId="$SealingKey", PolicyName="default", Policy=MORE)),
    ("a key that does not rotate", "SealingKey/Rotates", aws("kms", "disable_key_rotation", KeyId="$SealingKey")),
    ("a disabled key", "StorageKey/State", aws("kms", "disable_key", KeyId="$StorageKey")),
    ("one more policy of a function", "CreateByokKeyRole/Policies/more", aws("iam", "put_role_policy", RoleName="$CreateByokKeyRole", PolicyName="more", PolicyDocument=MORE)),
    ("AdministratorAccess", "CreateByokKeyRole/Attached", aws("iam", "attach_role_policy", RoleName="$CreateByokKeyRole", PolicyArn=ADMINISTRATOR)),
    ("the router's policy for another role", "RouterPolicy/Roles", aws("iam", "attach_role_policy", RoleName="$DeleteFileRole", PolicyArn="$RouterPolicy")),
    ("a table opened to all", "CredentialsTable/Policy",
     aws("dynamodb", "put_resource_policy", ResourceArn=lambda s, _: f"arn:aws:dynamodb:{s.account.region}:{s.account.id}:table/{s.physical['CredentialsTable']}", Policy=MORE)),
    ("the rows of a table in a stream", "CredentialsTable/Stream",
     aws("dynamodb", "update_table", TableName="$CredentialsTable", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})),
    ("credentials that expire", "CredentialsTable/Expires",
     aws("dynamodb", "update_time_to_live", TableName="$CredentialsTable", TimeToLiveSpecification={"Enabled": True, "AttributeName": "v"})),
    ("the bucket's changes to EventBridge", "FilesBucket/Notifications",
     aws("s3", "put_bucket_notification_configuration", Bucket="$FilesBucket", NotificationConfiguration={"EventBridgeConfiguration": {}})),
    ("a versioned bucket", "FilesBucket/Versioning", aws("s3", "put_bucket_versioning", Bucket="$FilesBucket", VersioningConfiguration={"Status": "Enabled"})),
    ("log lines to somebody", "CreateByokKeyLogGroup", aws("logs", "put_subscription_filter", logGroupName="$CreateByokKeyLogGroup", filterName="x", filterPattern="",
                                                           destinationArn="arn:aws:lambda:us-east-1:444455556666:function:x")),
    ("a function that an account may call", "CreateByokKeyFunction/Policy",
     aws("lambda", "add_permission", FunctionName="$CreateByokKeyFunction", StatementId="x", Principal="111122223333", Action="lambda:InvokeFunction")),
    ("a function with a URL", "CreateByokKeyFunction/Urls", aws("lambda", "create_function_url_config", FunctionName="$CreateByokKeyFunction", AuthType="NONE")),
    ("key changes that nobody hears of", "KeyChangesRule", aws("events", "disable_rule", Name="$KeyChangesRule")),
]
UNDONE = [
    aws("kms", "enable_key", KeyId="$StorageKey"),
    aws("iam", "delete_role_policy", RoleName="$CreateByokKeyRole", PolicyName="more"),
    aws("iam", "detach_role_policy", RoleName="$CreateByokKeyRole", PolicyArn=ADMINISTRATOR),
    aws("iam", "detach_role_policy", RoleName="$DeleteFileRole", PolicyArn="$RouterPolicy"),
    aws("events", "enable_rule", Name="$KeyChangesRule"),
    aws("dynamodb", "update_time_to_live", TableName="$CredentialsTable", TimeToLiveSpecification={"Enabled": False, "AttributeName": "v"}),
]

FAULTS = [
    ("protection", "every update allowed", aws("cloudformation", "set_stack_policy", StackName=lambda s, _: s.name, StackPolicyBody=lambda *_: json.dumps(
        {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"}]})),
     aws("cloudformation", "set_stack_policy", StackName=lambda s, _: s.name, StackPolicyBody=lambda *_: (ROOT / "infra/cloud/stack-policy.json").read_text()), "stack policy: another"),
    ("protection", "a stack that can be deleted", *(aws("cloudformation", "update_termination_protection", StackName=lambda s, _: s.name, EnableTerminationProtection=on)
                                                   for on in (False, True)), "termination protection: off"),
    ("functions", "a part of the requests elsewhere", part_elsewhere, lambda s, _: live(s, RoutingConfig={}), "sends a part"),
    ("functions", "a version of somebody", another_version, lambda s, before: live(s, FunctionVersion=before), "which is not the stack's"),
    ("functions", "a version that seals elsewhere", expecting("AWS_ENDPOINT_URL_KMS", "AWS_ENDPOINT_URL"), unpatch, "CreateByokKeyFunction/Environment/AWS_ENDPOINT_URL_KMS"),
    ("functions", "other code", lambda _: patched(declared, "built", lambda *_: b""), unpatch, "is not what this commit"),
    ("drift", "a log kept for three days", aws("logs", "put_retention_policy", logGroupName="$CreateByokKeyLogGroup", retentionInDays=3),
     aws("logs", "put_retention_policy", logGroupName="$CreateByokKeyLogGroup", retentionInDays=1), "CreateByokKeyLogGroup MODIFIED"),
    ("alarm-recipients", "a stranger", aws("sns", "subscribe", TopicArn="$AlarmTopic", Protocol="sqs", Endpoint="arn:aws:sqs:us-east-1:444455556666:x"),
     aws("sns", "unsubscribe", SubscriptionArn=lambda _, made: made["SubscriptionArn"]), "reach .*444455556666:x"),
    ("batch-without-items", "an answer without its table", lambda s: patched(s.account.client("dynamodb"), "batch_get_item", lambda **_: {"Responses": {}, "UnprocessedKeys": {}}),
     unpatch, "{}, {}"),
    ("names", "a stack with a longer name", lambda s: s.account.client("iam").create_role(RoleName="x", Path=f"/{s.name}-2/", AssumeRolePolicyDocument="{}"),
     aws("iam", "delete_role", RoleName="x"), "/x"),
    ("status", "the administrator's role remembered", lambda s: patched(s.account, "remembered", "arn:aws:iam::000000000000:role/administer-x"), unpatch, "administer-x"),
    ("sealing", "a key that opens to something else", lambda s: patched(s.account.client("kms"), "decrypt", lambda **_: {"Plaintext": bytes(32)}),
     unpatch, "could not be checked|is not the one"),
    ("large-body", "a large body accepted", lambda s: patched(Subject, "send", lambda *a, **b: Response(201, {}, "{}")), unpatch, "status 201"),
    ("secrets-in-logs", "a provider key in a log", *line("GetSyncJobLogGroup", f"sk-{MARKER}-AbCd"), "GetSyncJobLogGroup"),
    ("secrets-in-logs", "a provider key in base64", *line("AccessLogGroup", HIDDEN), "AccessLogGroup"),
    ("secrets-in-logs", "an API key in a log", *line("AccessLogGroup", "Bearer sbx_0123456789abcdefghijklmnop"), "AccessLogGroup"),
    ("latency", "a slow request", *line("CreateByokKeyLogGroup", '{"message": "request", "duration_ms": 2500}'), "p99 2500"),
    ("metric-filters", "a metric of nothing", counted(0), lambda *_: None, "counted nothing"),
    ("parameters", "other parameters", lambda s: patched(s.deployment, "parameters", s.deployment.parameters | {"ReadsPerSecond": "1000000"}), unpatch, "ReadsPerSecond"),
    ("template", "another template", expecting("signalbox/credential", "signalbox/anything"), unpatch, "differences"),
    ("status", "a failed update", lambda s: patched(s.account, "stack", lambda name, ask=s.account.stack: ask(name) | {"StackStatus": "UPDATE_ROLLBACK_COMPLETE"}),
     unpatch, "UPDATE_ROLLBACK_COMPLETE"),
]

# What the engine does not do: if it is there, the check passes.
MISSING = [
    ("metric-filters", "a count", counted(5)),
    ("secrets-in-logs", "a line of the gateway", line("AccessLogGroup", "{}")[0]),
]
