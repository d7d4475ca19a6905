"""A fault for each check of a stack in use: a change behind the stack's back, which rehearsal.py makes on an engine.

To add one, add a row: the check, what is changed, how, how it is changed back, and what the check must see. One
change for each response that a check reads.
"""

import base64
import io
import json
import time
import zipfile
from unittest import mock

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


def nothing(*_) -> None:
    pass


def patched(target, name: str, new):
    patch = mock.patch.object(target, name, new)
    patch.start()
    return patch


def unpatch(_, patch) -> None:
    patch.stop()


def credentials_table(s: Subject, _=None) -> str:
    return f"arn:aws:dynamodb:{s.account.region}:{s.account.id}:table/{s.physical['CredentialsTable']}"


def live(s: Subject, **alias):
    return s.account.client("lambda").update_alias(FunctionName=s.physical["CreateByokKeyFunction"], Name="live", **alias)


def version(change):
    """Publishes a changed version, and moves the alias to it."""

    def publish(s: Subject) -> tuple:
        client, function = s.account.client("lambda"), s.physical["CreateByokKeyFunction"]
        before = client.get_alias(FunctionName=function, Name="live")["FunctionVersion"]
        old = client.get_function_configuration(FunctionName=function)
        change(client, function, old)
        live(s, FunctionVersion=client.publish_version(FunctionName=function)["Version"])
        return before, old

    return publish


def old_version(s: Subject, made: tuple) -> None:
    before, old = made
    live(s, FunctionVersion=before)
    s.account.client("lambda").update_function_configuration(
        FunctionName=s.physical["CreateByokKeyFunction"], Environment=old["Environment"])


def other_code(client, function: str, _) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("bootstrap", "#!/bin/sh\n")
    client.update_function_code(FunctionName=function, ZipFile=packed.getvalue())


other_kms = lambda c, f, old: c.update_function_configuration(  # noqa: E731
    FunctionName=f, Environment={"Variables": old["Environment"]["Variables"] | {"AWS_ENDPOINT_URL_KMS": "https://stranger.example"}})


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


def unsubscribe(s: Subject) -> None:
    sns = s.account.client("sns")
    for found in sns.list_subscriptions_by_topic(TopicArn=s.physical["AlarmTopic"])["Subscriptions"]:
        sns.unsubscribe(SubscriptionArn=found["SubscriptionArn"])


def update(template=lambda body: body, **parameters: str):
    """Updates the stack without the SAM CLI, and waits for the end. Returns what it was before."""

    def run(s: Subject) -> tuple[str, dict[str, str]]:
        body = s.account.client("cloudformation").get_template(StackName=s.id, TemplateStage="Original")["TemplateBody"]
        made = body, s.parameters
        send(s, template(body), s.parameters | parameters)
        return made

    return run


def send(s: Subject, body: str, parameters: dict[str, str]) -> None:
    s.s3.put_object(Bucket=s.deployment.bucket, Key="template", Body=body.encode())
    s.account.client("cloudformation").update_stack(
        StackName=s.name, TemplateURL=s.s3.generate_presigned_url("get_object", Params={"Bucket": s.deployment.bucket, "Key": "template"}).partition("?")[0],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"], Parameters=[{"ParameterKey": n, "ParameterValue": v} for n, v in parameters.items()])
    while s.account.stack(s.name)["StackStatus"].endswith("_IN_PROGRESS"):
        time.sleep(0.1)


def as_before(s: Subject, made: tuple[str, dict[str, str]]) -> None:
    send(s, *made)


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
    ("a table opened to all", "CredentialsTable/Policy", aws("dynamodb", "put_resource_policy", ResourceArn=credentials_table, Policy=MORE)),
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
    ("functions", "a version that seals elsewhere", version(other_kms), old_version, "CreateByokKeyFunction/Environment/AWS_ENDPOINT_URL_KMS"),
    ("drift", "a log kept for three days", aws("logs", "put_retention_policy", logGroupName="$CreateByokKeyLogGroup", retentionInDays=3),
     aws("logs", "put_retention_policy", logGroupName="$CreateByokKeyLogGroup", retentionInDays=1), "CreateByokKeyLogGroup MODIFIED"),
    ("alarm-recipients", "a stranger", aws("sns", "subscribe", TopicArn="$AlarmTopic", Protocol="sqs", Endpoint="arn:aws:sqs:us-east-1:444455556666:x"), lambda s, _: unsubscribe(s), "reach .*444455556666:x"),
    ("alarm-recipients", "nobody left", unsubscribe, nothing, "0 of 0 "),
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
    ("metric-filters", "a metric of nothing", counted(0), nothing, "counted nothing"),
    ("parameters", "other parameters", update(ReadsPerSecond="1000000"), as_before, "ReadsPerSecond"),
    ("template", "another template", update(lambda body: body.replace("signalbox/credential", "signalbox/anything")), as_before, "differences"),
    ("status", "a failed update", update(failing), nothing, "UPDATE_ROLLBACK_COMPLETE"),
    ("functions", "other code", version(other_code), lambda s, made: live(s, FunctionVersion=made[0]), "is not what this commit"),
]

# What the engine does not do: if it is there, the check passes.
MISSING = [
    ("metric-filters", "a count", counted(5)),
    ("secrets-in-logs", "a line of the gateway", line("AccessLogGroup", "{}")[0]),
]
