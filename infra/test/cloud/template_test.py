"""What must hold of template.yaml that nothing else notices: no linter, no engine, no judge of policies.

One rule compares a whole thing, rather than a list of cases.
"""

import collections
import json
import re
import tomllib
import unittest

import networkx
from cfnlint.template import Template as Graph
from samtranslator.model.preferences.deployment_preference_collection import CODEDEPLOY_PREDEFINED_CONFIGURATIONS_LIST

from stack import ACCOUNT, KEPT, NOTHING, OPERATIONS, REGION, SOURCE, STACK, Stack, environments, source

# Every condition of the template holds.
ALL = {
    "AlarmEmail": "ops@example.com", "CertificateArn": "arn:aws:acm:eu-central-1:111122223333:certificate/c", "DomainName": "signalbox.example.com",
    "FilesVersioning": "Enabled", "Firewall": "On", "GatewayLoggingRole": "Create", "HostedZoneId": "Z1",
    "ReservedConcurrency": "100", "StageName": "other",
}

# A resource, another that must exist before it is created, and why. Nothing else notices a missing one.
ORDER = [
    ("GatewayLogging", "Api", "an account without an API refuses the role"),
    ("ApiStage", "GatewayLogging", "without the role the gateway refuses to log"),
    ("ApiStage", "ExecutionLogGroup", "the gateway would make the group, unencrypted and kept for ever"),
    *((f"{o}Function", f"{o}Policy", "the first requests would be denied") for o in OPERATIONS),
]

STATEFUL = {"AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::S3::BucketPolicy"}
# All other STATEFUL resources are kept, but not after a failed creation unless they are protected.
DELETION = {
    # Disposable data, or a copy of CloudTrail's records.
    "ControlTable": ("Delete", "Delete"),
    "KeyChangesLogGroup": ("Delete", "Delete"),
    # Their names are fixed: a group that stays would hinder the next deployment.
    "ExecutionLogGroup": ("RetainExceptOnCreate", "Delete"),
    "FirewallLogGroup": ("Delete", "Delete"),
    # Other APIs in the region may use the role as soon as it is set.
    "GatewayLogging": ("Retain", "Retain"),
    "GatewayLoggingRoleForRegion": ("Retain", "Retain"),
}

# The property that names a resource, by type. Any other name would collide with another stack's. The policies of deployer_test refuse
# the others.
NAMED = {"AWS::Logs::LogGroup": "LogGroupName", "AWS::Logs::QueryDefinition": "Name", "AWS::Logs::ResourcePolicy": "PolicyName"}
# The properties that a resource may have, by type. Another one can change what requests and stored data meet: binary types,
# compression, a cache, CORS, an authorizer; a metric's unit; a disabled key or rule; a log class without metric filters; a stream.
PROPERTIES = {
    "AWS::ApiGateway::RestApi": "Body EndpointAccessMode EndpointConfiguration Parameters SecurityPolicy",
    "AWS::ApiGateway::Stage": "AccessLogSetting DeploymentId MethodSettings RestApiId StageName TracingEnabled Variables",
    "AWS::CloudWatch::Alarm": "ActionsEnabled AlarmActions AlarmDescription ComparisonOperator DatapointsToAlarm Dimensions EvaluationPeriods ExtendedStatistic "
                              "MetricName Metrics Namespace OKActions Period Statistic Threshold TreatMissingData",
    "AWS::DynamoDB::Table": "AttributeDefinitions BillingMode DeletionProtectionEnabled KeySchema OnDemandThroughput PointInTimeRecoverySpecification "
                            "SSESpecification TimeToLiveSpecification",
    "AWS::KMS::Key": "Description EnableKeyRotation KeyPolicy MultiRegion PendingWindowInDays RotationPeriodInDays",
    "AWS::Logs::LogGroup": "KmsKeyId LogGroupName RetentionInDays Tags",
    "AWS::Logs::MetricFilter": "FilterPattern LogGroupName MetricTransformations",
    "AWS::S3::Bucket": "BucketEncryption LifecycleConfiguration OwnershipControls PublicAccessBlockConfiguration VersioningConfiguration",
    "AWS::SNS::Topic": "KmsMasterKeyId",
}
# The resources that a stack with everything loses with one parameter. No other resource is optional.
OPTIONAL = {
    "AlarmEmail": "AlarmSubscription",
    "DomainName": "Domain DomainMapping DomainRecord DomainRecordForIpv6",
    "Firewall": "FirewallLogGroup FirewallLogging WebAcl WebAclAssociation",
    "GatewayLoggingRole": "GatewayLogging GatewayLoggingRoleForRegion",
    "HostedZoneId": "DomainRecord DomainRecordForIpv6",
    "ReservedConcurrency": "ConcurrencyAlarm",
}
# What a condition puts into a stack of defaults. The other conditions of properties put nothing there.
DEFAULTS = {
    "CreatesGatewayLoggingRole": ["existing"],
    "HasDomain": [f"https://{STACK}-Api.execute-api.{REGION}.amazonaws.com/{STACK}-ApiStage/api/v1"],
    "HasNextSealingKey": [f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{STACK}-SealingKey"],
    "HasPermissionsBoundary": [], "HasReservedConcurrency": [], "HasRewrapRole": [], "HasRouterRole": [], "HasVersioning": [],
    "IsPrivate": ["REGIONAL"],
}
# The service that a role trusts, and its managed policy. The other roles are the functions'.
ROLES = {
    "DeploymentRole": ("codedeploy", ["AWSCodeDeployRoleForLambdaLimited"]),
    "GatewayLoggingRoleForRegion": ("apigateway", ["AmazonAPIGatewayPushToCloudWatchLogs"]),
}

EVERY = {
    "AWS::CloudWatch::Alarm": {"ActionsEnabled": True},
    "AWS::DynamoDB::Table": {"BillingMode": "PAY_PER_REQUEST", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
    "AWS::KMS::Key": {"EnableKeyRotation": True, "RotationPeriodInDays": 365, "PendingWindowInDays": 30},
    "AWS::Logs::LogGroup": {"RetentionInDays": "90"},
    "AWS::S3::Bucket": {"OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}, "PublicAccessBlockConfiguration": dict.fromkeys(("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True)},
}

# Of each parameter with a pattern: legal values, the longest and an odd one among them, and one that AWS or the template would refuse later.
IDS = "11112222-3333-4444-5555-666677778888"
VALUES = {
    "StageName": (["live", "v1_2-" + 27 * "x"], "v1/x"),
    **{role: (["arn:aws:iam::111122223333:role/router", "arn:aws:iam::111122223333:role/team/x/My+Router=1,2.3@x_y-z"], "arn:aws:iam::111122223333:user/router")
       for role in ("RouterRoleArn", "RewrapRoleArn")},
    "NextSealingKeyArn": ([f"arn:aws:kms:eu-central-1:111122223333:key/{IDS}", f"arn:aws:kms:mx-central-1:111122223333:key/mrk-{IDS.replace('-', '')}"],
                          "arn:aws:kms:eu-central-1:111122223333:alias/sealing"),
    "AlarmEmail": (["ops@example.com", "on-call+signalbox_1@mail.ops.example-x.co.uk"], "ops@localhost"),
    "PermissionsBoundaryArn": (["arn:aws:iam::111122223333:policy/boundary-signalbox-prod", "arn:aws:iam::111122223333:policy/team/My+Boundary=1", "arn:aws:iam::aws:policy/PowerUserAccess"],
                               "arn:aws:iam::111122223333:role/boundary"),
    "DomainName": (["a.io", f"{63 * 'a'}.x-1.example.com", ".".join([61 * "b"] * 4)], "*.example.com"),
    "CertificateArn": ([f"arn:aws:acm:eu-central-1:111122223333:certificate/{IDS}", f"arn:aws:acm:ap-southeast-5:111122223333:certificate/{IDS}"],
                       "arn:aws:iam::111122223333:server-certificate/signalbox"),
    "HostedZoneId": (["Z1", "Z" + 31 * "A", "Z08123456ABCDEFGHIJK"], "/hostedzone/Z1"),
    "PrivateVpcEndpoint": (["vpce-0123abcd", "vpce-0123456789abcdef0"], "vpce-svc-0123abcd"),
}
# The gateway's responses: every type that API Gateway documents for a REST API, by our status.
RESPONSES = {
    400: {"BAD_REQUEST_BODY", "BAD_REQUEST_PARAMETERS", "DEFAULT_4XX", "REQUEST_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"},
    401: {"INVALID_API_KEY", "UNAUTHORIZED"},
    403: {"ACCESS_DENIED", "WAF_FILTERED"},
    404: {"EXPIRED_TOKEN", "INVALID_SIGNATURE", "MISSING_AUTHENTICATION_TOKEN", "RESOURCE_NOT_FOUND"},
    429: {"QUOTA_EXCEEDED", "THROTTLED"},
    500: {"API_CONFIGURATION_ERROR", "AUTHORIZER_CONFIGURATION_ERROR", "AUTHORIZER_FAILURE", "DEFAULT_5XX", "INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT"},
}
# The caller chooses none of these values. An error's text may quote the Authorization header.
LOGGABLE = {
    "error.responseType", "httpMethod", "identity.sourceIp", "integration.latency", "integration.requestId", "integration.status", "protocol",
    "requestId", "requestTime", "resourcePath", "responseLatency", "responseLength", "status", "tlsVersion", "waf.status",
}

# Audit lines, access log and key changes: a shorter retention erases them, too.
EVIDENCE = {f"{log}LogGroup" for log in ("Access", "KeyChanges", *OPERATIONS)}
STATEMENTS = json.loads((SOURCE.parent / "infra/cloud/stack-policy.json").read_text())["Statement"]


class Template(unittest.TestCase):
    def test_order(self):
        resources = Stack(**ALL).resources
        graph = Graph("", {"Resources": resources}).graph.graph
        for name, first, why in ORDER:
            self.assertIn(first, networkx.descendants(graph, name), f"{name} must wait for {first}: {why}")

    def test_what_is_kept(self):
        """A failed first deployment ends in ROLLBACK_COMPLETE: a protected table cannot be deleted, so it is retained even then."""
        stack = Stack(**ALL)
        protected = {n for n in stack.resources if str(stack.properties(n).get("DeletionProtectionEnabled", False)).lower() != "false"}
        self.assertEqual(protected, {"AccessTable", "CredentialsTable", "SyncJobsTable"})
        for name, resource in stack.resources.items():
            if resource["Type"] in STATEFUL or name in DELETION:
                rule = ("Retain" if name in protected else "RetainExceptOnCreate", "Retain")
                self.assertEqual(tuple(resource.get(p, "Delete") for p in ("DeletionPolicy", "UpdateReplacePolicy")), DELETION.get(name, rule), name)
        self.assertLessEqual(EVIDENCE, set(stack.of_type("AWS::Logs::LogGroup")))
        deny = {"Effect": "Deny", "Principal": "*"}
        self.assertEqual(STATEMENTS, [
            {"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"},
            deny | {"Action": ["Update:Replace", "Update:Delete"], "Resource": "*", "Condition": {"StringEquals": {"ResourceType": sorted(KEPT)}}},
            deny | {"Action": "Update:*", "Resource": [f"LogicalResourceId/{name}" for name in sorted(EVIDENCE)]},
        ])

    def test_what_expires(self):
        stack = Stack(FilesVersionsDays="7")
        expiring = {t: stack.properties(t).get("TimeToLiveSpecification") for t in stack.of_type("AWS::DynamoDB::Table")}
        self.assertEqual({t: e for t, e in expiring.items() if e}, {"ControlTable": {"AttributeName": "exp", "Enabled": True}})
        rules = {rule.pop("Id"): rule for rule in stack.properties("FilesBucket")["LifecycleConfiguration"]["Rules"]}
        self.assertEqual(rules, {
            "noncurrent-versions": {"Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": "7"}},
            "delete-markers": {"Status": "Enabled", "ExpiredObjectDeleteMarker": True},
            "incomplete-uploads": {"Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}},
        })

    def test_gateway_responses(self):
        """infra/test/contract/openapi compares their headers and bodies with infra/openapi.yaml."""
        responses = Stack().properties("Api")["Body"]["x-amazon-apigateway-gateway-responses"]
        self.assertEqual(set(responses), set().union(*RESPONSES.values()))
        for code, kinds in RESPONSES.items():
            for kind in kinds:
                (media_type, template), = responses[kind]["responseTemplates"].items()
                self.assertEqual((responses[kind]["statusCode"], media_type), (str(code), "application/json"), kind)
                self.assertEqual(re.findall(r"\$[\w.]+", template), ["$context.requestId"], kind)

    def test_transport(self):
        stack = Stack(**ALL)
        for name in ("Api", "Domain"):
            p = stack.properties(name)
            self.assertEqual((p["SecurityPolicy"], p["EndpointAccessMode"], p["EndpointConfiguration"]["IpAddressType"]),
                             ("SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09", "STRICT", "dualstack"), name)
        self.assertEqual(stack.properties("Domain")["RegionalCertificateArn"], ALL["CertificateArn"])
        target = {"DNSName": "${Domain.RegionalDomainName}", "HostedZoneId": "${Domain.RegionalHostedZoneId}"}
        self.assertEqual([stack.properties(r) for r in stack.of_type("AWS::Route53::RecordSet")],
                         [{"HostedZoneId": ALL["HostedZoneId"], "Name": ALL["DomainName"], "Type": t, "AliasTarget": target} for t in ("A", "AAAA")])
        self.assertEqual(stack.properties("DomainMapping"), {name: stack.named(n) for name, n in (("DomainName", "Domain"), ("RestApiId", "Api"), ("Stage", "ApiStage"))})
        private = Stack(PrivateVpcEndpoint="vpce-0123abcd").properties("Api")
        self.assertEqual(private["EndpointConfiguration"]["Types"] + private["EndpointConfiguration"]["VpcEndpointIds"], ["PRIVATE", "vpce-0123abcd"])
        self.assertEqual(private["Policy"]["Statement"], [{"Effect": "Allow", "Principal": "*", "Action": "execute-api:Invoke", "Resource": "execute-api:/*",
                                                           "Condition": {"StringEquals": {"aws:SourceVpce": "vpce-0123abcd"}}}])

    def test_firewall(self):
        """It stands before the API, inspects a whole body, and refuses; the rules of AWS refuse by themselves."""
        stack = Stack(**ALL)
        acl = stack.properties("WebAcl")
        self.assertEqual(stack.properties("WebAclAssociation"), {
            "ResourceArn": f"arn:aws:apigateway:{REGION}::/restapis/{stack.named('Api')}/stages/{stack.named('ApiStage')}", "WebACLArn": stack.named("WebAcl.Arn")})
        group = stack.named("FirewallLogGroup.Arn").removesuffix(":*")
        logging = stack.properties("FirewallLogging")
        self.assertEqual((logging["ResourceArn"], logging["LogDestinationConfigs"]), (stack.named("WebAcl.Arn"), [group]))
        self.assertEqual(logging["LoggingFilter"], {"DefaultBehavior": "DROP", "Filters": [
            {"Behavior": "KEEP", "Requirement": "MEETS_ANY", "Conditions": [{"ActionCondition": {"Action": "BLOCK"}}]}]}, "admitted requests are in the access log")
        self.assertEqual((acl["DefaultAction"], acl["AssociationConfig"]), ({"Allow": {}}, {"RequestBody": {"API_GATEWAY": {"DefaultSizeInspectionLimit": "KB_64"}}}))
        self.assertEqual([r["Priority"] for r in acl["Rules"]], [0, 1, 2], "AWS refuses two rules of one priority")
        actions = {r["Name"]: r.get("OverrideAction") or {a: v["CustomResponse"]["ResponseCode"] for a, v in r["Action"].items()} for r in acl["Rules"]}
        self.assertEqual(actions, {"body-size": {"Block": 400}, "rate": {"Block": 429}, "known-bad-inputs": {"None": {}}})
        size, rate, _ = (r["Statement"] for r in acl["Rules"])
        self.assertEqual(size["SizeConstraintStatement"] | {"TextTransformations": []}, {
            "FieldToMatch": {"Body": {"OversizeHandling": "MATCH"}}, "ComparisonOperator": "GT", "Size": 65536, "TextTransformations": []})
        self.assertEqual(rate, {"RateBasedStatement": {"AggregateKeyType": "IP", "EvaluationWindowSec": 300, "Limit": "10000"}})

    def test_everything_at_rest_is_under_the_storage_key(self):
        """The sealing key refuses the services, so a table under it could not be made."""
        stack, encrypted = Stack(**ALL), set()
        for name in stack.resources:
            for key in re.findall(r'"(?i:kms\w*key_?id)": "([^"]+)"', json.dumps(stack.properties(name))):
                encrypted.add(name)
                self.assertIn(key, (stack.named("StorageKey"), stack.named("StorageKey.Arn")), name)
        kinds = {"AWS::DynamoDB::Table", "AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::SNS::Topic"}
        self.assertEqual(encrypted, {n for n, r in stack.resources.items() if r["Type"] in kinds})
        (rule,) = stack.properties("FilesBucket")["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        self.assertIs(rule["BucketKeyEnabled"], True, "each file would cost a call of KMS")

    def test_functions(self):
        """A request ends within 10 seconds: before the gateway's 29, and after three attempts of 2 seconds at one call of AWS."""
        for architecture, go in {"arm64": "arm64", "x86_64": "amd64"}.items():
            stack = Stack(**ALL, Architecture=architecture)
            self.assertIn(f":= {go}\n", (SOURCE.parent / f"infra/release/{architecture}/Makefile").read_text())
            for name in stack.of_type("AWS::Lambda::Function"):
                p, operation = stack.properties(name), name.removesuffix("Function")
                for varies in ("Code", "Description", "Environment"):
                    p.pop(varies)
                self.assertEqual(p, {
                    "Architectures": [architecture], "Handler": "bootstrap", "MemorySize": 256, "ReservedConcurrentExecutions": "100",
                    "Runtime": "provided.al2023", "Timeout": 10,
                    "LoggingConfig": {"LogFormat": "JSON", "LogGroup": stack.named(f"{operation}LogGroup"), "SystemLogLevel": "WARN"},
                    "Role": stack.named(f"{operation}Role.Arn"), "Tags": [{"Key": "lambda:createdBy", "Value": "SAM"}], "TracingConfig": {"Mode": "Active"},
                }, name)
                built = {"BuildMethod": "makefile", "ContextPath": {"Fn::Sub": "infra/release/${Architecture}"}}
                self.assertEqual(stack.resources[name]["Metadata"], stack.resources[name]["Metadata"] | built, name)
                group = stack.properties(f"{name}DeploymentGroup")
                self.assertEqual((group["DeploymentConfigName"], group["ServiceRoleArn"]), ("CodeDeployDefault.LambdaCanary10Percent5Minutes", stack.named("DeploymentRole.Arn")))

    def test_gateway_hands_requests_to_the_functions(self):
        stack = Stack()
        body = stack.properties("Api")["Body"]
        self.assertEqual(set(body), {"info", "openapi", "paths", "servers", "x-amazon-apigateway-gateway-responses"})
        self.assertEqual(body["servers"], [{"x-amazon-apigateway-endpoint-configuration": {"disableExecuteApiEndpoint": False}}])
        for operations in body["paths"].values():
            for operation in operations.values():
                operation["x-amazon-apigateway-integration"].pop("uri")
                self.assertEqual(operation, {"responses": {}, "x-amazon-apigateway-integration": {"httpMethod": "POST", "type": "aws_proxy"}})
        self.assertEqual(len(stack.of_type("AWS::Lambda::Permission")), 3, "nobody else may call a function")

    def test_names(self):
        stack = Stack(**ALL)
        for kind, name in NAMED.items():
            for resource in stack.of_type(kind):
                self.assertIn(STACK, stack.properties(resource).get(name, STACK), resource)
        for name, output in stack.outputs.items():  # AccessTableName is that of AccessTable
            resource = re.sub("^Own|(Name|Arn)$", "", name)
            if resource in stack.resources:
                self.assertIn(stack.resolve(output["Value"]), (stack.named(resource), stack.named(f"{resource}.Arn")), name)
        self.assertEqual(stack.resolve(stack.outputs["ApiBaseUrl"]["Value"]), f"https://{ALL['DomainName']}/api/v1")
        moved = Stack(NextSealingKeyArn="arn:next")
        self.assertEqual([moved.resolve(moved.outputs[name]["Value"]) for name in ("SealingKeyArn", "OwnSealingKeyArn")], ["arn:next", stack.named("SealingKey.Arn")])
        for name in stack.of_type("AWS::Logs::MetricFilter"):
            self.assertEqual(stack.properties(name)["MetricTransformations"][0]["MetricNamespace"], f"Signalbox/{STACK}", name)
        self.assertTrue(json.loads(stack.properties("Dashboard")["DashboardBody"])["widgets"])
        aliases = {a["AliasName"]: a["TargetKeyId"] for a in map(stack.properties, stack.of_type("AWS::KMS::Alias"))}
        self.assertEqual(aliases, {f"alias/{STACK}/{use.lower()}": stack.named(f"{use}Key") for use in ("Sealing", "Storage")})

    def test_roles(self):
        boundary = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
        stack = Stack(**ALL, PermissionsBoundaryArn=boundary)
        for name in stack.of_type("AWS::IAM::Role"):
            service, managed = ROLES.get(name, ("lambda", []))
            self.assertEqual(stack.properties(name), {
                "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [
                    {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}]},
                **({"ManagedPolicyArns": [f"arn:aws:iam::aws:policy/service-role/{policy}" for policy in managed]} if managed else {}),
                # The region's role serves other stacks too: no deployer may touch it.
                **({} if service == "apigateway" else {"Path": f"/{STACK}/", "PermissionsBoundary": boundary}),
            }, name)
        functions = set(stack.of_type("AWS::IAM::Role")) - set(ROLES)
        self.assertEqual(functions, {f"{o}Role" for o in OPERATIONS})
        self.assertEqual({name: stack.properties(name)["Roles"] for name in stack.of_type("AWS::IAM::Policy")},
                         {f"{role.removesuffix('Role')}Policy": [stack.named(role)] for role in functions})
        self.assertEqual({name: set(stack.properties(name)) for name in stack.of_type("AWS::IAM::ManagedPolicy")}, {"RouterPolicy": {"Description", "PolicyDocument"}})

    def test_samconfig(self):
        """SAM ignores a parameter that the template does not have."""
        config = tomllib.loads((SOURCE.parent / "samconfig.toml").read_text())
        self.assertEqual(len(config) - 1, len(environments()), "two environments have one stack")
        for name, given in environments().items():
            self.assertFalse([other for other in environments() if name.startswith(f"{other}-")], f"{name}: the policies of the other stack match this one's resources")
            for parameter, value in given.items():
                rule = source()["Parameters"].get(parameter, {"AllowedValues": []})
                self.assertTrue(
                    value in map(str, rule.get("AllowedValues", [value])) and re.fullmatch(rule.get("AllowedPattern", ".*"), value)
                    and (rule["Type"] == "String" or rule.get("MinValue", 0) <= int(value) <= rule.get("MaxValue", int(value))), f"{name}: {parameter}={value}")
        self.assertEqual(config["default"]["local_start_api"]["parameters"]["port"], 3001, "make run serves the port before it")
        for name in config.keys() - {"version"}:
            self.assertEqual(set(config[name]), {"global", "local_start_api", "local_invoke"} if name == "default" else {"global"})
            given = config[name]["global"]["parameters"]
            stack, environment = given["stack_name"], "dev" if name == "default" else name
            given.pop("parameter_overrides")
            self.assertIn(f"environment={environment}", given.pop("tags").split())
            self.assertEqual(given, {
                # The service role reads no other code. A cached build could ship old code.
                "stack_name": stack, "s3_prefix": stack, "build_in_source": True, "lint": True,
                "capabilities": "CAPABILITY_IAM", "confirm_changeset": name == "prod", "fail_on_empty_changeset": False, "resolve_s3": True,
            }, name)
            self.assertTrue(name == "default" or environments()[stack].get("DeploymentPreference") != "AllAtOnce", f"{name}: nothing would roll a bad version back")
        self.assertEqual(len({given["Architecture"] for given in environments().values()}), 1, "prod would run what nobody tried")

    def test_what_every_resource_of_a_type_has(self):
        stack = Stack(**ALL)
        for kind, properties in PROPERTIES.items():
            for name in stack.of_type(kind):
                self.assertLessEqual(set(stack.properties(name)), set(properties.split()), name)
                self.assertEqual(stack.properties(name), stack.properties(name) | EVERY.get(kind, {}), name)

    def test_logs_without_secrets(self):
        stack = Stack(Firewall="On")
        form = stack.properties("ApiStage")["AccessLogSetting"]["Format"]
        self.assertLessEqual(set(re.findall(r"\$context\.([A-Za-z.]+)", form)), LOGGABLE)
        self.assertEqual(form.count("$"), len(re.findall(r"\$context\.", form)))
        self.assertEqual(Stack(StageName="other").properties("ExecutionLogGroup")["LogGroupName"], f"API-Gateway-Execution-Logs_{STACK}-Api/other")
        rate = {"HttpMethod", "ResourcePath", "ThrottlingBurstLimit", "ThrottlingRateLimit"}
        for settings in stack.properties("ApiStage")["MethodSettings"]:
            self.assertEqual(settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"])
            self.assertEqual({n: v for n, v in settings.items() if n not in rate}, {"LoggingLevel": "ERROR", "DataTraceEnabled": False})
        redacted = stack.properties("FirewallLogging")["RedactedFields"]
        secret = [{"SingleHeader": {"Name": name}} for name in ("authorization", "cookie", "idempotency-key", "x-api-key")]
        self.assertEqual(sorted(map(str, redacted)), sorted(map(str, [*secret, {"UriPath": {}}, {"QueryString": {}}])))
        # A sampled request shows its headers: AWS redacts only the logs.
        self.assertEqual(set(re.findall(r'"SampledRequestsEnabled": (\w+)', json.dumps(stack.properties("WebAcl")))), {"false"})

    def test_ceilings(self):
        """They bound the cost of a mistake, and are above the throttles: otherwise admitted requests would fail. In each environment
        of samconfig.toml two loads must fit: the largest requests at the sustained rate, and smaller ones all at once at rate and burst."""
        units = {f"{event['Properties']['Method']} {event['Properties']['Path']}": function["Metadata"]["Units"] for function in source()["Resources"].values()
                 if function["Type"] == "AWS::Serverless::Function" for event in function["Properties"]["Events"].values()}
        for name, parameters in environments().items():
            stack = Stack(**parameters)
            own = {f"{s['HttpMethod']} {s['ResourcePath'][1:].replace('~1', '/')}": int(s["ThrottlingRateLimit"]) for s in stack.properties("ApiStage")["MethodSettings"]}
            self.assertEqual(own.keys() - {"* *"}, {route for route in units if not route.startswith("GET ")}, "a route that is no GET has its own throttle")
            for load, times in (("Largest", 1), ("Typical", 2)):
                for table in stack.of_type("AWS::DynamoDB::Table"):
                    for which, ceiling in enumerate(("MaxReadRequestUnits", "MaxWriteRequestUnits")):
                        allowed = stack.properties(table)["OnDemandThroughput"][ceiling]
                        needed = {r: times * own.get(r, own["* *"]) * u[load].get(table, (0, 0))[which] for r, u in units.items()}
                        each = ", ".join(f"{need:,} for {route}" for route, need in needed.items() if need)
                        self.assertLessEqual(allowed, 40_000, f"{table}: AWS refuses a higher {ceiling} until the account's quota is raised")
                        self.assertLessEqual(sum(needed.values()), allowed, (
                            f"{name}: {table} needs {sum(needed.values()):,} units a second ({each}), but {ceiling} is {allowed:,}: "
                            "raise it in template.yaml (OnDemandThroughput), or lower ReadsPerSecond, CreatesPerSecond or DeletesPerSecond"))

    def test_a_parameter_reaches_the_live_version(self):
        """SAM names a version before parameters are resolved. So one that changes a function's environment must change the version,
        and tunables are variables of the stage, which are read at each request."""
        plain, versions = Stack(), lambda stack: {n: stack.properties(n) for n in stack.of_type("AWS::Lambda::Version")}
        for parameter, value in {
            "CredentialsPerWorkspace": "7", "DeleteBurst": "100", "DeleteRatePerMinute": "600", "FilesVersioning": "Enabled", "StageName": "other", "ReservedConcurrency": "100",
            "NextSealingKeyArn": "arn:aws:kms:eu-central-1:111122223333:key/other",
        }.items():
            other = Stack(**{parameter: value})
            environment = lambda stack: [stack.properties(f)["Environment"] for f in stack.of_type("AWS::Lambda::Function")]  # noqa: E731
            self.assertEqual(environment(plain) == environment(other), versions(plain) == versions(other), parameter)
        self.assertIn("key/other", other.properties("CreateByokKeyFunction")["Environment"]["Variables"]["SEALING_KEY_ARN"])
        changed = Stack(DeleteRatePerMinute="600", DeleteBurst="100", CredentialsPerWorkspace="7")
        self.assertEqual(changed.properties("ApiStage")["Variables"], {"deleteRatePerMinute": "600", "deleteBurst": "100", "credentialsPerWorkspace": "7"})
        self.assertEqual(changed.properties("ApiStage")["DeploymentId"], plain.properties("ApiStage")["DeploymentId"])
        for name, resource in source()["Resources"].items():
            if resource["Type"] == "AWS::Serverless::Function":
                self.assertIs(resource["Properties"].get("AutoPublishAliasAllProperties"), True, f"{name}: the alias would keep an old setting")

    def test_parameters(self):
        """The functions refuse a higher bound: every create would get 500, or every deletion."""
        parameters = source()["Parameters"]
        bounds = dict(re.findall(r"(?m)^\tMax(\w+) += ([\d_]+)$", "".join((SOURCE.parent / "shared" / path).read_text() for path in ("limits/limits.go", "byok/room.go"))))
        for name, bound in (("CredentialsPerWorkspace", "Stored"), ("DeleteRatePerMinute", "PerMinute"), ("DeleteBurst", "Burst")):
            self.assertEqual(parameters[name]["MaxValue"], int(bounds[bound]), name)
        self.assertEqual({name for name, p in parameters.items() if p["Type"] == "Number" and "AllowedValues" not in p and p.get("MinValue", 0) < 1}, {"ReservedConcurrency"})
        self.assertEqual(set(parameters["DeploymentPreference"]["AllowedValues"]), set(CODEDEPLOY_PREDEFINED_CONFIGURATIONS_LIST), "AWS has these")

    def test_defaults(self):
        """The contract promises them. infra/test/contract/openapi compares the throttles with it."""
        promised = re.search(r"(?s)at most (\d+) credentials.* may delete (\d+) files a minute and (\d+) at once", (SOURCE.parent / "infra/openapi.yaml").read_text())
        names = ("CredentialsPerWorkspace", "DeleteRatePerMinute", "DeleteBurst", "FilesVersionsDays")
        self.assertEqual([source()["Parameters"][name]["Default"] for name in names], [*map(int, promised.groups()), 1])
        counted = re.findall(r"throttle 10,000 of ([\d,]+), ", (SOURCE.parent / "infra/operations/cost.md").read_text())
        self.assertEqual(counted, [f"{source()['Parameters'][f'{which}PerSecond']['Default']:,}" for which in ("Reads", "Creates", "Creates", "Deletes")])

    def test_what_conditions_leave_out(self):
        conditions = {name: r["Condition"] for name, r in Stack().resources.items() if "Condition" in r}
        absent = lambda given: {name for name, condition in conditions.items() if not Stack(**given).holds(condition)}  # noqa: E731
        self.assertEqual([absent({}), absent(ALL)], [set(conditions), set()])
        lost = {parameter: " ".join(sorted(absent({n: v for n, v in ALL.items() if n != parameter}))) for parameter in ALL}
        self.assertEqual({parameter: names for parameter, names in lost.items() if names}, OPTIONAL)

        stack, found = Stack(), collections.defaultdict(list)

        def look(value) -> None:
            for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
                look(item)
            if isinstance(value, dict) and "Fn::If" in value:
                there, seen = stack.resolve(value), found[value["Fn::If"][0]]
                seen += [there] if there is not NOTHING and there not in seen else []

        look([stack.resources, stack.outputs])
        self.assertEqual(found, DEFAULTS)

    def test_patterns(self):
        patterns = {name: p["AllowedPattern"] for name, p in source()["Parameters"].items() if "AllowedPattern" in p}
        self.assertEqual(set(patterns), set(VALUES))
        for name, (legal, wrong) in VALUES.items():
            self.assertEqual([value for value in [*legal, wrong] if re.fullmatch(patterns[name], value)], legal, name)
            self.assertEqual(re.fullmatch(patterns[name], "") is None, name == "StageName", f"{name} can be left out")

    def test_rules(self):
        domain, private = {"DomainName": "a.io", "HostedZoneId": "Z1"}, {"PrivateVpcEndpoint": "vpce-0123abcd"}
        certificate = {"CertificateArn": VALUES["CertificateArn"][0][0]}
        for given, broken in (({}, set()), (certificate, set()), (private, set()), (domain | certificate, set()), (domain, {"DomainNeedsCertificate"}),
                              (private | domain | certificate, {"PrivateHasNoDomain"})):
            stack = Stack(**given)
            self.assertEqual({name for name, rule in source()["Rules"].items() if stack.holds(rule["RuleCondition"])
                              and not all(stack.holds(a["Assert"]) for a in rule["Assertions"])}, broken, given)

    def test_calls_that_can_open_or_stop_a_key_are_reported(self):
        """No judge of policies asks for EventBridge, CloudWatch and SNS."""
        next_key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b"
        stack = Stack(NextSealingKeyArn=next_key, AlarmEmail="ops@example.com")
        group, topic, rule = stack.named("KeyChangesLogGroup.Arn"), stack.named("AlarmTopic"), stack.properties("KeyChangesRule")
        rule.pop("Description")
        self.assertEqual(rule, {
            "EventPattern": {"source": ["aws.kms"], "detail-type": ["AWS API Call via CloudTrail"], "detail": {
                "eventName": ["DisableKey", "DisableKeyRotation", "PutKeyPolicy", "ReplicateKey", "ScheduleKeyDeletion"],
                "requestParameters": {"keyId": [*(stack.named(n) for n in ("SealingKey", "SealingKey.Arn", "StorageKey", "StorageKey.Arn")), next_key, "0a1b"]},
            }},
            "Targets": [{"Id": "log", "Arn": group.removesuffix(":*")}],
        })
        statement = {"Effect": "Allow", "Principal": {"Service": ["events.amazonaws.com", "delivery.logs.amazonaws.com"]}, "Resource": group}
        self.assertEqual(json.loads(stack.properties("KeyChangesLogPolicy")["PolicyDocument"])["Statement"], [
            statement | {"Action": "logs:CreateLogStream"},
            statement | {"Action": "logs:PutLogEvents", "Condition": {"ArnEquals": {"aws:SourceArn": stack.named("KeyChangesRule.Arn")}}},
        ])
        publish = {"Action": "sns:Publish", "Resource": topic}
        self.assertEqual(stack.properties("AlarmTopicPolicy"), {"Topics": [topic], "PolicyDocument": {"Version": "2012-10-17", "Statement": [
            publish | {"Sid": "Alarms", "Effect": "Allow", "Principal": {"Service": "cloudwatch.amazonaws.com"}, "Condition": {
                "StringEquals": {"aws:SourceAccount": ACCOUNT}, "ArnLike": {"aws:SourceArn": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{STACK}-*"}}},
            publish | {"Sid": "DenyPlainHttp", "Effect": "Deny", "Principal": "*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
        ]}})
        self.assertEqual(stack.properties("AlarmSubscription"), {"TopicArn": topic, "Protocol": "email", "Endpoint": "ops@example.com"})
        self.assertEqual(stack.resources["AlarmSubscription"]["Condition"], "HasAlarmEmail")
