"""The service role can update every resource of the template, the administrator's role what that one cannot, the verifier read it. The pipeline
keeps its three guards.

CloudFormation's resource schemas name the permissions that each type needs; cfn-lint
contains them.
"""

import fnmatch
import importlib.resources
import itertools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.parse

import yaml
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from cfnlint.template import Template as Graph

import declared
import stack
from account import ROOT
from checks import CHECKS
from deployed import filled
from runbook import PAGES, sections
from template_test import ALL, STATEMENTS
from stack import ACCOUNT, REGION, SOURCE, STACK, Stack, environments, source


# The ARN of a resource, beside those of stack.ARNS: {x} is a property of it, {id} the name that CloudFormation makes.
ARNS = {
    "AWS::ApiGateway::Account": "apigateway:{REGION}::/account",
    "AWS::ApiGateway::BasePathMapping": "apigateway:{REGION}::/domainnames/{DomainName}/basepathmappings/x",
    "AWS::ApiGateway::Deployment": "apigateway:{REGION}::/restapis/{RestApiId}/deployments/x",
    "AWS::ApiGateway::DomainName": "apigateway:{REGION}::/domainnames/{id}",
    "AWS::ApiGateway::RestApi": "apigateway:{REGION}::/restapis/{id}",
    "AWS::ApiGateway::Stage": "apigateway:{REGION}::/restapis/{RestApiId}/stages/{StageName}",
    "AWS::CloudWatch::Alarm": "cloudwatch:{REGION}:{ACCOUNT}:alarm:{id}-x",
    "AWS::CloudWatch::Dashboard": "cloudwatch::{ACCOUNT}:dashboard/{DashboardName}",
    "AWS::CodeDeploy::Application": "codedeploy:{REGION}:{ACCOUNT}:application:{id}-x",
    "AWS::CodeDeploy::DeploymentGroup": "codedeploy:{REGION}:{ACCOUNT}:deploymentgroup:{ApplicationName}/{id}-x",
    "AWS::IAM::ManagedPolicy": "iam::{ACCOUNT}:policy/{id}-x",
    "AWS::KMS::Alias": "kms:{REGION}:{ACCOUNT}:{AliasName}",
    "AWS::Lambda::Alias": "lambda:{REGION}:{ACCOUNT}:function:{FunctionName}",
    "AWS::Route53::RecordSet": "route53:::hostedzone/{HostedZoneId}",
    "AWS::SNS::Topic": "sns:{REGION}:{ACCOUNT}:{id}-x",
    "AWS::WAFv2::WebACL": "wafv2:{REGION}:{ACCOUNT}:regional/webacl/{Name}/x",
}
# What CloudFormation uses for a resource and the template does not have: configurations of AWS, a change of a zone, the uploaded code.
BESIDES = {
    "AWS::CodeDeploy::DeploymentGroup": "codedeploy:{REGION}:{ACCOUNT}:deploymentconfig:{DeploymentConfigName}",
    "AWS::Lambda::Alias": "codedeploy:{REGION}:{ACCOUNT}:deploymentconfig:CodeDeployDefault.LambdaAllAtOnce",
    "AWS::Lambda::Function": "s3:::aws-sam-cli-managed-default-samclisourcebucket-x/{STACK}/code",
    "AWS::Route53::RecordSet": "route53:::change/x",
}
# Calls that may be denied, as the beginning of "resource type action ARN". The schemas do not say which property needs which permission.
UNUSED = [
    # services that the template does not use
    r".* (apprunner|appsync|cognito-idp|ec2|elasticloadbalancing|firehose|payments):",
    # replicas, streams, imports and policies of tables
    r"\w+Table .* (dynamodb:(\w*(Replica|Kinesis|Import|ContributorInsights|Item)|(Delete|Put)ResourcePolicy|Query|Scan)|s3:)",
    # only CodeDeploy's role has a managed policy
    r"(GetSyncJob|CreateByokKey|DeleteFile)Role .* iam:(At|De)tachRolePolicy",
    # no key is disabled
    r"\w+Key .* kms:(Dis|En)ableKey(?!Rotation)|\w+Key .* kms:DisableKeyRotation",
    # properties of functions; the key and the bucket are named by variables
    r"\w+Function\w* .* (lambda:(Associate|Put(Prov|Run|FunctionSc|FunctionRec)|\w+CodeSigning)|kms:|s3:GetObject\w* \S+filesbucket)",
    # properties of log groups
    r"\w+LogGroup .* (logs:(Delete|Put)(DataProt|Index|Bearer|LogGroupDel)|s3:)",
    # properties of buckets
    r"FilesBucket .* s3:(?!(Create|Delete)Bucket |Get|ListTags|Put(BucketOwner|BucketPublic|BucketTag|BucketVers|Encrypt|Lifecycle)|TagRes|UntagRes)",
    # nothing is shared with another account
    r"(AlarmTopic|FirewallLogging|WebAclAssociation) .* (sns:PutData|iam:DescribeOrg|wafv2:PutPerm)",
]
# An administrator makes the first deployment, and each that makes a key or an API: they have no names by which a policy could
# limit a role to this stack's. Keys are never deleted. The region's logging role serves other stacks, too.
FIRST = [r"\w+Key .* kms:(CreateKey|ScheduleKeyDeletion)", r"Api .* apigateway:POST", r"GatewayLogging.* (iam:|\S+ \S+/account)"]
# A principal that writes a key's or the bucket's policy can name a session in it, and no boundary stops that session.
ADMINISTRATORS = [r".* (kms:PutKeyPolicy|s3:(Delete|Put)BucketPolicy|iam:DeleteRolePermissionsBoundary|logs:DeleteLogGroup|logs:(Delete|Put)ResourcePolicy)"]

# No schema names these. Whether AWS asks for them was not tried.
UNCALLED = {"iam:SetDefaultPolicyVersion", "logs:GetLogDelivery", "logs:ListLogDeliveries", "logs:UpdateLogDelivery"}

# What `make verify` calls beside the reads of the resources, by service and ARN: of the stack, and for its test data.
VERIFIES = [
    ("cloudformation", f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/1",
     "DescribeStackResourceDrifts DescribeStackResources DescribeStacks DetectStackDrift DetectStackResourceDrift GetStackPolicy GetTemplate ListStackResources"),
    ("cloudformation", "*", "BatchDescribeTypeConfigurations DescribeStackDriftDetectionStatus"), ("cloudwatch", "*", "GetMetricData"), ("iam", "*", "ListRoles"),
    ("dynamodb", f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{STACK}-AccessTable", "BatchGetItem BatchWriteItem ConditionCheckItem DeleteItem GetItem PutItem Query UpdateItem"),
    ("kms", f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{STACK}-SealingKey", "ListGrants"),
    ("lambda", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{STACK}-GetSyncJobFunction", "ListFunctionUrlConfigs ListVersionsByFunction"),
    ("logs", f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{STACK}-AccessLogGroup", "DescribeSubscriptionFilters FilterLogEvents"),
    ("s3", f"arn:aws:s3:::{STACK}-filesbucket", "ListBucketVersions"), ("s3", f"arn:aws:s3:::{STACK}-filesbucket/x", "DeleteObject DeleteObjectVersion PutObject"),
]

# Services that make roles of their own, for a domain and for the firewall.
LINKED = {"ops.apigateway.amazonaws.com", "wafv2.amazonaws.com"}

# The condition keys without which an action would be a way to more rights, and values that must be refused.
ROLE = f"arn:aws:iam::{ACCOUNT}:role/"
GUARDED = {
    r"cloudformation:CreateChangeSet": ("cloudformation:RoleArn", [f"{ROLE}admin", f"{ROLE}administer-{STACK}"]),
    r"events:PutRule": ("events:source", [["aws.kms", "aws.signin"]]),
    r"iam:(AttachRolePolicy|CreateRole|De\w+RolePolicy|PutRole\w+)": ("iam:PermissionsBoundary", ["arn:aws:iam::aws:policy/AdministratorAccess"]),
    r"iam:(At|De)tachRolePolicy": ("iam:PolicyARN", [f"arn:aws:iam::aws:policy/{p}" for p in ("AdministratorAccess", "service-role/AmazonAPIGatewayPushToCloudWatchLogs")]),
    r"iam:CreateServiceLinkedRole": ("iam:AWSServiceName", ["ecs.amazonaws.com"]),
    r"iam:PassRole": ("iam:PassedToService", ["apigateway.amazonaws.com", "ec2.amazonaws.com"]),
    r"kms:(CreateGrant|Decrypt|Encrypt|GenerateDataKey|RevokeGrant)": ("kms:ViaService", [f"ssm.{REGION}.amazonaws.com"]),
    r"route53:ChangeResourceRecordSets": ("route53:ChangeResourceRecordSetsNormalizedRecordNames", [["www.example.com"]]),
}
# What belongs to the deployment or to the account and is no resource of the stack. One of them is named like the stack, outside its path.
STRANGE = [*(f"{ROLE}{name}{STACK}" for name in ("administer-", "cloudformation-", "deploy-", "verify-")), f"{ROLE}{STACK}-admin",
           f"arn:aws:iam::{ACCOUNT}:policy/boundary-{STACK}"]

# The policies of each role; the longest value of each gap. ACM takes no longer domain than DNS.
ROLES = {"boundary": ["boundary"], "deployer": ["deployer"], "service": ["service-api", "service-data"],
         "administer": ["service-api", "service-data", "administer"], "verifier": ["verifier"]}
FILES = {name: json.loads((SOURCE.parent / f"infra/cloud/{name}-policy.json").read_text()) for names in ROLES.values() for name in names}
POLICIES = {role: [s for name in names for s in FILES[name]["Statement"]] for role, names in ROLES.items()}
LONGEST = {"ACCOUNT": 12, "REGION": 14, "REST_ID": 10, "SEALING_KEY": 36, "STORAGE_KEY": 36, "DOMAIN": 253, "ZONE": 32, "BOUNDARY": 128, "ARTIFACTS": 63, "STACK": stack.LONGEST}
# IAM's limits without white space: of a role's inline policies together, and of a managed policy.
INLINE, MANAGED = {"deployer", "verifier"}, 6_144

# The stack's name or an id of it, as a whole segment of an ARN. The ARN of a tag contains another one, in URL encoding.
OWN = re.compile(r"[:/_-](STACK(-|/|$)|(REST_ID|SEALING_KEY|STORAGE_KEY|DOMAIN|ZONE)(/|$))|/tags/\*\w+\*(REST_ID\*|DOMAIN)$")
# Resources of AWS, of the account, or without a name that a policy could give.
NOT_OURS = {
    "boundary": {"arn:aws:kms:REGION:ACCOUNT:key/*", "arn:aws:kms:REGION:*:key/*"},
    "deployer": {"arn:aws:cloudformation:REGION:aws:transform/Serverless-2016-10-31", "arn:aws:cloudformation:REGION:ACCOUNT:stack/aws-sam-cli-managed-default/*",
                 "arn:aws:s3:::ARTIFACTS"},
    "service": {"arn:aws:apigateway:REGION::/account", "arn:aws:apigateway:REGION::/domainnames", "arn:aws:codedeploy:REGION:ACCOUNT:deploymentconfig:CodeDeployDefault.*",
                "arn:aws:iam::ACCOUNT:role/aws-service-role/*", "arn:aws:route53:::change/*", "arn:aws:wafv2:REGION:ACCOUNT:regional/managedruleset/*"},
    "verifier": {"arn:aws:apigateway:REGION::/account"},
}
NOT_OURS["administer"] = NOT_OURS["service"]


READS = r" [\w-]+:(Describe|GET|Get(?!Item|Object)|List)"  # configuration, neither rows nor files
VERBS = {"create", "read", "update", "delete", "tag"}
KNOWN = json.loads((importlib.resources.files("cfnlint.data") / "AdditionalSpecs/Policies.json").read_text())


def actions(statements: list[dict]) -> set[str]:
    listed = (s["Action"] for s in statements)
    return {action for some in listed for action in ([some] if isinstance(some, str) else some)}


class Calls:
    """What CloudFormation calls for each resource of the template, by the schemas of its types."""

    def __init__(self):
        self.stack = Stack(**ALL, PermissionsBoundaryArn=f"arn:aws:iam::{ACCOUNT}:policy/boundary-{STACK}")
        self.kinds = {name: resource["Type"] for name, resource in self.stack.resources.items()}
        self.properties = {name: self.stack.properties(name) for name in self.kinds}
        self.arns = {name: self.filled(ARNS[kind], name) for name, kind in self.kinds.items() if kind in ARNS} | {
            name: self.stack.named(f"{name}.Arn").removesuffix(":*") for name, kind in self.kinds.items() if kind in stack.ARNS}
        self.graph = Graph("", {"Resources": self.stack.resources}).graph.graph

    def filled(self, arn: str, name: str) -> str:
        return "arn:aws:" + arn.format(**self.properties[name], ACCOUNT=ACCOUNT, REGION=REGION, STACK=STACK, id=self.stack.physical(name))

    def made(self, verbs: set[str]) -> dict[str, list]:
        """The calls of these verbs, by "resource type action ARN": an action, an ARN and condition keys."""
        found = {}
        for name, kind in self.kinds.items():
            schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
            needed = {verb: handler.get("permissions", []) for verb, handler in schema["handlers"].items()} | {"tag": schema.get("tagging", {}).get("permissions", [])}
            for verb, action in ((verb, action) for verb in verbs for action in needed.get(verb, [])):
                for arn in self.targets(name, verb, action):
                    found[f"{name} {kind} {action} {arn}"] = [action, arn, self.conditions(name, arn)]
        return found

    def targets(self, name: str, verb: str, action: str) -> list[str]:
        """The ARNs of the resource and of those that it refers to, as far as their type is one of the action's. Without such an ARN
        the template does not use the action."""
        service, operation = action.split(":", 1)
        types = KNOWN.get(service, {}).get("Actions", {}).get(operation.lower(), {}).get("Resources")
        if not types:
            return ["*"]
        if service == "apigateway" and verb == "tag":
            return [f"arn:aws:apigateway:{REGION}::/tags/{urllib.parse.quote(self.arns[name], safe='')}"]
        if action == "apigateway:POST":  # to the collection
            return [self.arns[name].rpartition("/")[0]]
        kind = self.kinds[name]
        near = [self.arns[n] for n in [name, *self.graph.successors(name)] if n in self.arns] + ([self.filled(BESIDES[kind], name)] if kind in BESIDES else [])
        types = [types] if isinstance(types, str) else types
        formats = "|".join(re.sub(r"\$\{\w+\}", "[^:]*", form) for t in types for form in KNOWN[service]["Resources"][t.lower()]["ARNFormats"])
        return [arn for arn in near if re.fullmatch(formats, arn) and not any(other.startswith(f"{arn}/") for other in near)]

    def conditions(self, name: str, arn: str) -> dict:
        """The condition keys of a call, from the properties of the resource and of the role that it touches or passes."""
        own = self.properties[name]
        role = next((self.properties[n] for n, a in self.arns.items() if a == arn and ":role/" in a), {})
        trusted = role.get("AssumeRolePolicyDocument", {}).get("Statement", [{}])[0].get("Principal", {})
        found = {
            "events:source": own.get("EventPattern", {}).get("source"),
            "iam:PassedToService": trusted.get("Service"),
            "iam:PermissionsBoundary": role.get("PermissionsBoundary"),
            "iam:PolicyARN": next(iter(role.get("ManagedPolicyArns", [])), None),
            "kms:ViaService": f"dynamodb.{REGION}.amazonaws.com" if "SSESpecification" in own else None,
            "route53:ChangeResourceRecordSetsNormalizedRecordNames": [own["Name"]] if "AliasTarget" in own else None,
        }
        return {key: value for key, value in found.items() if value}


class Deployment(unittest.TestCase):
    def denied(self, role: str, calls: dict[str, list]) -> set[str]:
        """The names of the calls that a role's policies deny. Their gaps are filled for the stack of Calls."""
        judged = subprocess.run(["node", "policies/judge.mjs"], cwd=ROOT / "infra/test/cloud", check=True, stdout=subprocess.PIPE, text=True,
                                input=json.dumps({"account": ACCOUNT, "policies": [filled(name) for name in ROLES[role]], "calls": calls}))
        return set(json.loads(judged.stdout))

    def refuse_unguarded(self, role: str, calls: dict[str, list]) -> None:
        """An allowed call with GUARDED's key is denied without it, and with another value."""
        unguarded = {}
        for name in calls.keys() - self.denied(role, calls):
            action, arn, conditions = calls[name]
            for key, others in (guard for pattern, guard in GUARDED.items() if re.fullmatch(pattern, action)):
                rest = {k: v for k, v in conditions.items() if k != key}
                unguarded |= {f"{name} {key}={value}": [action, arn, rest | {key: value}] for value in others} | {f"{name} without {key}": [action, arn, rest]}
        self.assertTrue(unguarded)
        self.assertEqual(unguarded.keys() - self.denied(role, unguarded), set(), f"the {role}'s policies allow these calls")

    def test_each_role_may_make_its_calls(self):
        """The service role and the administrator's update every resource, and the verifier reads it. An exception is denied, unless it only reads."""
        calls = Calls()
        self.assertEqual({name.split()[1] for name in calls.made(VERBS)}, set(calls.kinds.values()), "a type without a call has a wrong ARN")
        for role, verbs, excepted in (
            ("service", VERBS, UNUSED + FIRST + ADMINISTRATORS), ("administer", VERBS, UNUSED + FIRST),
            ("verifier", {"read"}, [UNUSED[0], r"\S+ \S+ [\w-]+:(?!GET|Get|List|Describe)"]),  # some schemas name actions that change something, also to read
        ):
            made = calls.made(verbs)
            denied, why = self.denied(role, made), {name: [e for e in excepted if re.match(e, name)] for name in made}
            self.assertEqual([], [e for e in excepted if all(e in why[name] for name in made)], f"{role}: an exception excuses every call")
            self.assertEqual("", "\n".join(name for name in denied if not why[name]), f"the {role}'s policies deny these calls")
            self.assertEqual(set(excepted), {e for name in denied for e in why[name]}, f"{role}: an exception explains nothing")
            self.assertEqual("", "\n".join(name for name in made.keys() - denied if why[name] and not re.search(READS, name)), f"the {role}'s policies allow what nobody needs")
            if role != "verifier":
                made |= {name: ["iam:CreateServiceLinkedRole", f"{ROLE}aws-service-role/{name}/x", {"iam:AWSServiceName": name}] for name in LINKED}
                self.assertEqual(self.denied(role, made) & LINKED, set())
                self.refuse_unguarded(role, made)
                called = {action.lower() for action, *_ in made.values()}
                self.assertEqual({a for a in actions(POLICIES[role]) if not fnmatch.filter(called, a.lower())}, UNCALLED, f"{role}: no call needs these")

    def test_the_deployer_may_make_the_calls_of_sam(self):
        """Not those of `sam sync` and of --on-failure. Others are for a deployment that failed, or for AWS's newer events."""
        subprocess.run([ROOT / "infra/release/venv", ROOT / "infra/release", ROOT / ".build/sam"], check=True)
        (code,) = (ROOT / ".build/sam/lib").glob("python3*/site-packages/samcli/lib/deploy/deployer.py")
        called = set(re.findall(r"_client\.(?:get_paginator\(\W)?(\w+)", code.read_text())) - {"get_paginator", "get_waiter", "create_stack", "update_stack", "rollback_stack", "delete_stack"}
        self.assertIn("execute_change_set", called)
        arn, role, artifacts = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/1", f"{ROLE}cloudformation-{STACK}", "arn:aws:s3:::aws-sam-cli-managed-default-x"
        calls = {name: ["cloudformation:" + name.title().replace("_", ""), arn, {"cloudformation:RoleArn": role}] for name in called} | {
            "pass": ["iam:PassRole", role, {"iam:PassedToService": "cloudformation.amazonaws.com"}],
            **{name: [f"s3:{name}", f"{artifacts}/{STACK}/code.zip", {}] for name in ("GetObject", "PutObject")},
            **{name: [f"s3:{name}", artifacts, {}] for name in ("GetBucketLocation", "ListBucket")}}
        self.assertEqual(self.denied("deployer", calls), set())
        self.refuse_unguarded("deployer", calls)
        others = {f"cloudformation:{name}" for name in ("DeleteChangeSet", "DescribeEvents", "GetTemplate", "ListStackResources", "TagResource")}
        self.assertEqual(actions(POLICIES["deployer"]) - others, {action for action, *_ in calls.values()})

    def test_nobody_gets_more_rights(self):
        """A deployer acts as any role under the boundary. If he could write a key's or the bucket's policy, he would name that role's session
        in it: IAM does not apply a boundary's implicit denial to a session that a resource's policy names."""
        calls = {f"{action} {arn} {service}": [f"iam:{action}", arn, {"iam:PassedToService": f"{service}.amazonaws.com", "iam:PermissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/boundary-{STACK}"}]
                 for action in KNOWN["iam"]["Actions"] if not action.startswith(("get", "list")) for arn in STRANGE for service in ("lambda", "cloudformation")}
        for role in ROLES.keys() - {"boundary"}:
            passed = {f"passrole {ROLE}cloudformation-{STACK} cloudformation"} if role == "deployer" else set()
            self.assertEqual(calls.keys() - self.denied(role, calls), passed, role)

    def test_what_the_verifier_may_do_beside(self):
        """It reads no file, and uses the storage key through tables and bucket only."""
        calls = {f"{service}:{name}": [f"{service}:{name}", arn, {}] for service, arn, names in VERIFIES for name in names.split()}
        key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{STACK}-StorageKey"
        keys = {name: [f"kms:{name}", key, {"kms:ViaService": f"{service}.{REGION}.amazonaws.com"}] for name, service in (("Decrypt", "dynamodb"), ("GenerateDataKey", "s3"))}
        self.assertEqual(self.denied("verifier", calls | keys | {"file": ["s3:GetObject", f"arn:aws:s3:::{STACK}-filesbucket/x", {}]}), {"file"})
        self.refuse_unguarded("verifier", keys)
        called = {action.lower() for action, *_ in (Calls().made({"read"}) | calls | keys).values()}
        self.assertEqual({a for a in actions(POLICIES["verifier"]) if not fnmatch.filter(called, a.lower())}, set(), "no call needs these")

    def test_each_resource_is_the_stacks(self):
        """Its ARN contains the stack's name or an id of it. An action on * has no resources, or reads."""
        for name, statements in POLICIES.items():
            for statement in statements:
                resources = {statement["Resource"]} if isinstance(statement["Resource"], str) else set(statement["Resource"])
                others = {r for r in resources if not OWN.search(r)} - NOT_OURS.get(name, set())
                self.assertLessEqual(others, {"*"}, f"{name}: {statement['Sid']}")
                for service, action in (a.split(":") for a in actions([statement] if others else [])):
                    writes = KNOWN[service]["Actions"][action.lower()].get("Resources") and not re.match("Describe|Get|List", action)
                    self.assertFalse(writes, f"{name}: {statement['Sid']} allows {service}:{action} on the resources of others")

    def test_they_name_their_actions_and_fit(self):
        """Measured is the whole document, filled with the longest names."""
        self.assertLessEqual(max(map(len, environments())), LONGEST["STACK"])
        for name, document in FILES.items():
            for statement in document["Statement"]:
                for action in actions([statement]):
                    self.assertRegex(action, r"^[\w-]+:(\w+|(Describe|Get|List)\w*\*\w*)$", statement["Sid"])
                self.assertEqual(statement["Effect"], "Allow")
            policy = json.dumps(document, separators=(",", ":"))
            for gap, length in LONGEST.items():
                policy = policy.replace(gap, "x" * length)
            self.assertLessEqual(len(policy), 10_240 if name in INLINE else MANAGED, name)

    def test_no_generated_name_cuts_the_stacks(self):
        """CloudFormation makes STACK-LogicalId-TAIL of at most 64 characters. Computed with a tail of 13, and not seen on AWS."""
        room = 64 - len("--") - 13
        for kind in ("AWS::IAM::Role", "AWS::Lambda::Function"):
            for name in Stack(**ALL).of_type(kind):
                self.assertLessEqual(stack.LONGEST, room - min(len(name), room // 2), name)
        self.assertIn(f"at most {stack.LONGEST} lower-case letters", PAGES["deploy"])


class Parameters(unittest.TestCase):
    """Each parameter there and back, in a stack with everything: what the pipeline cannot change stands on the page."""

    VALUES = ALL | {f"{name}RoleArn": f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("Rewrap", "Router")} | {
        "NextSealingKeyArn": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/next", "PermissionsBoundaryArn": f"arn:aws:iam::{ACCOUNT}:policy/b", "PrivateVpcEndpoint": "vpce-1"}

    def test_the_page_names_what_the_service_role_cannot_change(self):
        calls, parameters = Calls(), source()["Parameters"]
        others = re.compile("|".join([*UNUSED, r"\w+LogGroup .* logs:(Delete|Put)ResourcePolicy"]))  # no group has a policy of its own
        guarded = {r.rpartition("/")[2] for s in STATEMENTS if s["Effect"] == "Deny" and s["Resource"] != "*" for r in s["Resource"]}
        changes, opened = {}, set()
        for name, parameter in parameters.items():
            default = str(parameter["Default"])
            value = self.VALUES.get(name) or next(v for v in map(str, parameter.get("AllowedValues", [1, 2])) if v != default)
            without, there = self.resources(name, default), self.resources(name, value)
            changed = {n for n in without.keys() | there.keys() if without.get(n) != there.get(n)}
            changes[name] = {(verb, n) for n in changed for verb in self.verbs(without.get(n), there.get(n))}
            opened |= {name for _ in changed & guarded}
            values = [*map(str, parameter.get("AllowedValues", [default, value]))]
            self.assertEqual(len({json.dumps(self.resources(name, v), sort_keys=True) for v in values}), len(values), f"{name}: two values make one stack")

        def cannot(role: str) -> set[str]:
            unable = Deployment().denied(role, calls.made({"create", "update", "delete"}))
            denied = {(verb, name.split()[0]) for verb in ("create", "update", "delete") for name in unable & calls.made({verb}).keys() if not others.match(name)}
            return {name for name, changed in changes.items() if changed & denied}

        named = [set(re.findall(r"`(\w+)[`=]", re.search(part, PAGES["deploy"])[0])) & parameters.keys() for part in (r"(?ms)^## As an administrator\n.*?```", "For a replacement, .*")]
        self.assertEqual([cannot("service"), opened], named)
        self.assertEqual(cannot("administer"), {"GatewayLoggingRole"})

    def resources(self, name: str, value: str) -> dict:
        s = Stack(**self.VALUES) if name != "DeploymentPreference" else Stack(**self.VALUES, **{name: value})  # the transform resolves that one
        s._parameters[name] = value
        return {n: (r["Type"], s.properties(n)) for n, r in s.resources.items() if "Condition" not in r or s.holds(r["Condition"])}

    def verbs(self, before, after) -> set[str]:
        """What CloudFormation does to a resource, there and back."""
        kind, properties = before or after
        fixed = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema.get("createOnlyProperties", [])
        replaced = not (before and after) or any(before[1].get(p) != after[1].get(p) for p in (f.rpartition("/")[2] for f in fixed))
        return {"create", "delete"} if replaced else {"update"}


class Pages(unittest.TestCase):
    """What no engine can show in infra/operations."""

    def test_what_is_deployed_was_built_in_the_same_block(self):
        for page, text in PAGES.items():
            for block in re.findall(r"(?ms)^ *```sh\n(.*?)^ *```$", text):
                before, deploys, _ = block.partition("sam deploy")
                self.assertTrue(not deploys or 'sam build --config-env "${ENVIRONMENT:?}" && ' in before, f"{page}: {block}")
                self.assertFalse(deploys and "policy boundary" in before, f"{page}: nobody could write the boundary's ARN into samconfig.toml before: {block}")

    def test_samconfig_undoes_a_change_of_the_command_line(self):
        """SAM keeps the stack's value of a parameter that samconfig.toml does not name."""
        found = [o for text in PAGES.values() for o in re.findall(r"sam deploy .* --parameter-overrides (\w+)=(\w+)", text)]
        self.assertTrue(found)
        for (name, value), named in itertools.product(found, environments().values()):
            self.assertIn(name, named)
            self.assertNotEqual(Stack(**named).resources, Stack(**named | {name: value}).resources, f"{name}={value} changes nothing")

    def test_zsh_reads_a_block_as_bash_does(self):
        """At the prompt of macOS's shell # begins no comment, and $NAME:r is $NAME without its extension."""
        tracked = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
        blocks = [(page, block) for page in tracked.stdout.split() for block in re.findall(r"(?ms)^ *```(?:ba)?sh\n(.*?)^ *```$", (ROOT / page).read_text())]
        self.assertGreater(len(blocks), 20)
        for page, block in blocks:
            self.assertNotRegex(re.sub(r"'[^']*'", "", block), r"\$\w+:[A-Za-z&]", page)
            for line in re.sub(r"""'[^']*'|"(?:\\.|[^"\\])*\"""", "", block).splitlines():
                self.assertNotRegex(line, r"(^|\s)#", page)

    def test_a_block_alone_works_or_stops_before_it_changes_anything(self):
        """In a new shell, after its first block, the names of earlier blocks are not there. bash at its prompt ends only the line that lacks one."""
        stub = """#!/bin/bash
        for ARGUMENT; do [ "$ARGUMENT" ] || { echo "an empty argument: $*" >&2; exit 1; }; done
        [[ "$*" =~ ' '(describe|get|list|filter|lookup|start-query|wait|find|show|check|plan) ]] || echo "$*" >>changes
        case "$*" in *describe-backup*) echo AVAILABLE ;; *list-policy-versions*) echo 1 ;; *) echo ACTIVE ;; esac
        """
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            for name in ("aws", "admin", "gh", "grep", "install", "make", "sam", "sleep", "tar", "infra/cloud/run"):
                program = here / name if "/" in name else here / ".build" / name
                program.parent.mkdir(parents=True, exist_ok=True)
                program.write_text(stub)
                program.chmod(0o755)
            for policy in (ROOT / "infra/cloud").glob("*-policy.json"):
                (here / "infra/cloud" / policy.name).symlink_to(policy)
            for page, block in ((page, block) for page in PAGES for block in sum(sections(page).values(), [])):
                before = sections("deploy")["The shell"] + (sections(page)["Before you begin"] if page == "restore" else []) + ["rm -f changes"]
                ran = subprocess.run(["bash", "--norc", "-i"], input="\n".join((*before, block)), cwd=folder, capture_output=True, text=True, timeout=60)
                if re.search("an empty argument|parameter null or not set|command not found", ran.stderr):
                    self.assertFalse((here / "changes").exists(), f"{page}: {ran.stderr}: {block}")

    def test_a_stop_ends_with_the_reserved_concurrency(self):
        for page in PAGES:
            for block in sum(sections(page).values(), []):
                if "delete-function-concurrency" in block:
                    self.assertIn("ReservedConcurrency", block)

    def test_what_counts_while_requests_are_stopped(self):
        """The checks of declared.py send none."""
        for check in CHECKS:
            if check.ask.__module__ == declared.__name__:
                self.assertRegex(PAGES["incidents"], f"Read .*`{check.name}`")


class Pipeline(unittest.TestCase):
    """The workflows deploy and release a tested commit of main. A deployment runs under the service role, and is verified with other credentials."""

    READ, TOKEN, COMMIT = {"contents": "read"}, {"id-token": "write"}, "${{ needs.commit.outputs.sha }}"
    # Of each job: the jobs before it, its environment, whose reviewers guard it, its rights, the commit that it takes, and its AWS role.
    JOBS = {
        "ci ci": (None, None, None, "${{ inputs.ref }}", None),
        "deploy commit": (None, None, READ, "${{ inputs.ref }}", None),
        "deploy ci": ("commit", None, READ, COMMIT, None),
        "deploy build": (["commit", "ci"], None, READ, COMMIT, None),
        "deploy deploy": (["commit", "build"], "${{ inputs.environment }}", READ | TOKEN, COMMIT, "${{ vars.AWS_ROLE_ARN }}"),
        "deploy verify": (["commit", "deploy"], "${{ inputs.environment }}-verify", READ | TOKEN, COMMIT, "${{ vars.AWS_VERIFY_ROLE_ARN }}"),
        "release ci": (None, None, READ, None, None),
        "release build": ("ci", None, READ, None, None),
        "release publish": ("build", "release", TOKEN | {"attestations": "write", "contents": "write"}, None, None),
    }

    def setUp(self):
        self.workflows = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}
        self.jobs = {f"{name} {job}": body for name, workflow in self.workflows.items() for job, body in workflow["jobs"].items()}

    def step(self, job: str, text: str) -> dict:
        """The one step of a job that contains a text."""
        (found,) = [s for s in self.jobs[job]["steps"] if text in str(s)]
        return found

    def given(self, job: str, action: str) -> dict:
        """The inputs of an action in a job, which uses it once at most."""
        found = [s["with"] for s in self.jobs[job].get("steps", []) if s.get("uses", "").startswith(f"{action}@")]
        self.assertLess(len(found), 2, f"{job}: {action}")
        return found[0] if found else {}

    def test_each_job_has_its_rights_and_no_more(self):
        self.assertEqual({job: (
            body.get("needs"), body.get("environment"), body.get("permissions"), (body.get("with") or self.given(job, "actions/checkout")).get("ref"),
            self.given(job, "aws-actions/configure-aws-credentials").get("role-to-assume")) for job, body in self.jobs.items()}, self.JOBS)
        self.assertEqual({name: w["permissions"] for name, w in self.workflows.items()}, {"ci": self.READ, "deploy": {}, "release": {}})

    def test_who_starts_them(self):
        """A person starts a deployment, a tag a release. YAML reads the key "on" as true."""
        self.assertEqual({name: w[True] if name == "release" else set(w[True]) for name, w in self.workflows.items()}, {
            "ci": {"pull_request", "push", "schedule", "workflow_call"}, "deploy": {"workflow_dispatch"}, "release": {"push": {"tags": ["v*"]}}})
        self.assertEqual({name: (w["concurrency"]["group"], w["concurrency"]["cancel-in-progress"]) for name, w in self.workflows.items()}, {
            "ci": ("ci-${{ github.event.pull_request.number || github.run_id }}", True),  # in another's group it would end that one's tests
            "deploy": ("deploy-${{ inputs.environment }}", False), "release": ("release-${{ github.ref }}", False)})
        self.assertEqual({job: body["if"] for job, body in self.jobs.items() if "if" in body}, {"deploy commit": "github.ref == 'refs/heads/main'"})
        self.assertNotIn("continue-on-error", str(self.jobs))

    def test_a_merged_and_tested_commit(self):
        for job in ("deploy ci", "release ci"):
            self.assertEqual(self.jobs[job]["uses"], "./.github/workflows/ci.yml")
        self.assertIn("bash .ci/run </dev/null", self.jobs["ci ci"]["strategy"]["matrix"]["command"])
        self.assertEqual(self.step("ci ci", "matrix.command }}")["run"], "${{ matrix.command }}")
        for job in ("deploy commit", "release build"):
            self.assertEqual(self.step(job, "merge-base"), {"run": "git merge-base --is-ancestor HEAD origin/main"})
        for job in ("deploy build", "deploy deploy"):
            self.assertEqual(self.step(job, "pip install"), {"run": "pip install --no-deps --require-hashes --only-binary=:all: -r infra/release/requirements.txt"})
        self.assertEqual(self.given("release publish", "actions/attest-build-provenance"), {"subject-path": "signalbox-*"})
        for job in ("deploy build", "deploy verify", "release build"):
            self.assertIs(self.given(job, "actions/setup-go")["cache"], False, "nothing from another run is deployed")
        self.assertEqual(self.step("deploy deploy", "tar -x"), {
            "env": {"SHA256": "${{ needs.build.outputs.sha256 }}"}, "run": 'echo "$SHA256  build.tar.gz" | sha256sum --check\ntar -xzf build.tar.gz\n'})
        self.assertEqual(self.step("release publish", "sha256sum"), {
            "env": {"SUMS": "${{ needs.build.outputs.sums }}"}, "run": 'echo "$SUMS  $(ls ./*_checksums.txt)" | sha256sum --check\nsha256sum --check ./*_checksums.txt\n'})

    def test_the_deployment(self):
        """Under the service role, and not cut short. No build sees AWS credentials."""
        self.assertEqual(self.workflows["deploy"]["env"]["CONFIG_ENV"], "${{ inputs.environment }}")
        self.assertEqual(self.step("deploy build", "sam build"), {"run": 'sam build --config-env "$CONFIG_ENV"'})
        self.assertEqual(self.step("deploy deploy", "sam deploy"), {"env": {"SERVICE_ROLE": "${{ vars.AWS_SERVICE_ROLE_ARN }}"},
                                                                    "run": 'sam deploy --config-env "$CONFIG_ENV" --no-confirm-changeset --role-arn "$SERVICE_ROLE"'})
        for given in environments().values():
            shift = re.fullmatch(r"AllAtOnce|(?:Canary10Percent|Linear10PercentEvery)(\d+)Minutes?", Stack(**given).named("DeploymentPreference"))
            minutes = int(shift[1] or 0) * (9 if shift[0].startswith("Linear") else 1)
            self.assertGreaterEqual(self.jobs["deploy deploy"]["timeout-minutes"], 30 + minutes, f"CloudFormation would go on without a job: {shift[0]}")
        for job in ("deploy deploy", "deploy verify"):
            self.assertEqual(self.given(job, "aws-actions/configure-aws-credentials")["aws-region"], "${{ vars.AWS_REGION }}")
        steps = self.jobs["deploy verify"]["steps"]
        self.assertLess(*(steps.index(self.step("deploy verify", text)) for text in ("go test", "configure-aws-credentials")))

    def test_the_stack_is_the_one_of_samconfig(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "samconfig.toml").write_text((SOURCE.parent / "samconfig.toml").read_text().replace("signalbox-", "another-"))
            for environment in self.workflows["deploy"][True]["workflow_dispatch"]["inputs"]["environment"]["options"]:
                subprocess.run(["bash", "-euc", self.step("deploy commit", "stack_name")["run"]], cwd=folder, check=True, env=os.environ | {"CONFIG_ENV": environment, "GITHUB_OUTPUT": "out"})
            self.assertEqual(pathlib.Path(folder, "out").read_text().split(), ["stack=another-dev", "stack=another-staging", "stack=another-prod"])
        self.assertEqual(self.step("deploy verify", "make verify"), {"env": {"STACK": "${{ needs.commit.outputs.stack }}"}, "run": 'make verify STACK="$STACK"'})
