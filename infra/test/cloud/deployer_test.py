"""The service role can update every resource of the template, the administrator's role what that one cannot, the verifier read it. The pipeline
keeps its three guards.

policies/deployment.test.mjs tries what the policies beside it must allow and must refuse.

CloudFormation's resource schemas name the permissions that each type needs; cfn-lint
contains them.
"""

import fnmatch
import importlib.resources
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

import declared
import stack
from checks import CHECKS
from runbook import PAGES, sections
from template_test import ALL
from stack import SOURCE, Stack, environments


# Properties that the template does not use, and services that it does not use. The
# schemas do not say which property needs which permission.
UNUSED = re.compile(
    r"dynamodb:(.*(Replica|Kinesis|Import).*|BatchWriteItem|(Delete|Put)ResourcePolicy|UpdateContributorInsights"
    r"|DeleteItem|GetItem|PutItem|Query|Scan|UpdateItem)"
    r"|iam:(.*(Group|User)Policy|DescribeOrganization)"
    r"|kms:(DisableKey|DisableKeyRotation|EnableKey)"
    r"|lambda:(.*(CodeSigning|CapacityProvider|LayerVersion|RuntimeAlias|GetFunctionConcurrency).*"
    r"|Put(ProvisionedConcurrency|FunctionRecursion|FunctionScaling|RuntimeManagement)Config)"
    r"|codedeploy:RegisterOnPremisesInstance"
    r"|logs:(DeleteDataProtectionPolicy|.*(Bearer|GroupDeletionProtection).*"
    r"|(Delete|Put)(Index|DataProtection)Policy|CreateLogStream|DescribeLogStreams|PutLogEvents)"
    r"|s3:(.*(MetadataTable|AnnotationTable|InventoryTable|JournalTable|ObjectAcl|ObjectLock).*"
    r"|DeleteBucket[A-Z].*|DeleteObject|GetObject.*|ListBucket"
    r"|Put(Accelerate|Analytics|IntelligentTiering|Inventory|Metrics|Replication)Configuration"
    r"|PutBucket(Abac|Acl|CORS|Logging|Notification|Replication|Website)|REST.*)"
    r"|sns:PutDataProtectionPolicy|wafv2:(Get|Put)PermissionPolicy"
    r"|(amplify|apprunner|appsync|bedrock-agentcore|cognito-idp|ec2|elasticfilesystem|elasticloadbalancing"
    r"|firehose|kinesis|payments|s3files|s3tables):.*"
)

# An administrator makes the first deployment, and each that makes a key or an API: they
# have no names by which a policy could limit a role to this stack's. Keys are never deleted.
FIRST = re.compile(r"kms:(CreateKey|ScheduleKeyDeletion)")
# A principal that writes a key's or the bucket's policy can name a session in it, and no boundary stops that session.
ADMINISTRATORS = re.compile(r"kms:PutKeyPolicy|s3:(Delete|Put)BucketPolicy|iam:DeleteRolePermissionsBoundary|logs:DeleteLogGroup|logs:(Delete|Put)ResourcePolicy")

# The policies of each role; the longest value of each gap. ACM takes no longer domain than DNS.
ROLES = {"boundary": ["boundary"], "deployer": ["deployer"], "service": ["service-api", "service-data"],
         "administer": ["service-api", "service-data", "administer"], "verifier": ["verifier"]}
LONGEST = {"ACCOUNT": 12, "REGION": 14, "REST_ID": 10, "SEALING_KEY": 36, "STORAGE_KEY": 36, "DOMAIN": 253, "ZONE": 32, "STACK": stack.LONGEST}
# IAM's limits without white space: of a role's inline policies together, and of a managed policy.
INLINE, MANAGED = {"deployer", "verifier"}, 6_144

# The stack's name or an id of it, as a whole segment of an ARN.
OWN = re.compile(r"[:/_-](STACK(-|/|$)|(REST_ID|SEALING_KEY|STORAGE_KEY|DOMAIN|ZONE)(/|$))")
# Resources of AWS, of the account, or without a name that a policy could give. policies/deployment.test.mjs tries the conditions.
NOT_OURS = {
    "boundary": {"arn:aws:kms:REGION:ACCOUNT:key/*", "arn:aws:kms:REGION:*:key/*"},
    "deployer": {"arn:aws:cloudformation:REGION:aws:transform/Serverless-2016-10-31", "arn:aws:cloudformation:REGION:ACCOUNT:stack/aws-sam-cli-managed-default/*",
                 "arn:aws:s3:::aws-sam-cli-managed-default-*"},
    "service": {"arn:aws:apigateway:REGION::/account", "arn:aws:apigateway:REGION::/domainnames", "arn:aws:codedeploy:REGION:ACCOUNT:deploymentconfig:CodeDeployDefault.*",
                "arn:aws:iam::ACCOUNT:role/aws-service-role/*", "arn:aws:route53:::change/*", "arn:aws:wafv2:REGION:ACCOUNT:regional/managedruleset/*"},
    "verifier": {"arn:aws:apigateway:REGION::/account"},
}
NOT_OURS["administer"] = NOT_OURS["service"]


def actions(statements: list[dict]) -> set[str]:
    listed = (s["Action"] for s in statements)
    return {action for some in listed for action in ([some] if isinstance(some, str) else some)}


class Deployment(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = {name: json.loads((SOURCE.parent / f"infra/cloud/{name}-policy.json").read_text()) for names in ROLES.values() for name in names}
        cls.policies = {role: [s for name in names for s in cls.files[name]["Statement"]] for role, names in ROLES.items()}

    def test_the_service_role_updates_every_resource(self):
        verbs = ("create", "read", "update", "delete")
        self.check("service", verbs, re.compile(f"{UNUSED.pattern}|{FIRST.pattern}|{ADMINISTRATORS.pattern}"))
        self.check("administer", verbs, re.compile(f"{UNUSED.pattern}|{FIRST.pattern}"))

    def test_the_verifier_reads_every_resource(self):
        """Some schemas name actions that change something, also to read."""
        self.check("verifier", ["read"], re.compile(rf"{UNUSED.pattern}|\w+:(?!Get|List|Describe)\w+"))

    def check(self, policy: str, verbs, others: re.Pattern):
        """The policy allows the actions of these verbs that every resource needs, but for others."""
        allowed = actions(self.policies[policy])
        for kind in {r["Type"] for r in Stack(**ALL).resources.values()}:
            handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema["handlers"]
            for verb in verbs:
                for action in handlers.get(verb, {}).get("permissions", []):
                    with self.subTest(f"{verb} {kind}: {action}"):
                        self.assertTrue(any(fnmatch.fnmatchcase(action, a) for a in allowed) or others.fullmatch(action))

    def test_each_resource_is_the_stacks(self):
        """Its ARN contains the stack's name or an id of it. An action on * has no resources, or reads."""
        known = json.loads((importlib.resources.files("cfnlint.data") / "AdditionalSpecs/Policies.json").read_text())
        for name, statements in self.policies.items():
            for statement in statements:
                resources = {statement["Resource"]} if isinstance(statement["Resource"], str) else set(statement["Resource"])
                others = {r for r in resources if not OWN.search(r)} - NOT_OURS.get(name, set())
                self.assertLessEqual(others, {"*"}, f"{name}: {statement['Sid']}")
                for service, action in (a.split(":") for a in actions([statement] if others else [])):
                    writes = known[service]["Actions"][action.lower()].get("Resources") and not re.match("Describe|Get|List", action)
                    self.assertFalse(writes, f"{name}: {statement['Sid']} allows {service}:{action} on the resources of others")

    def test_they_name_their_actions_and_fit(self):
        """Measured is the whole document, filled with the longest names."""
        self.assertLessEqual(max(map(len, environments())), LONGEST["STACK"])
        for name, document in self.files.items():
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


class Pages(unittest.TestCase):
    """What no engine can show in infra/operations."""

    def test_what_is_deployed_was_built_in_the_same_block(self):
        for page, text in PAGES.items():
            for block in re.findall(r"(?ms)^ *```sh\n(.*?)^ *```$", text):
                before, deploys, _ = block.partition("sam deploy")
                self.assertTrue(not deploys or "sam build --config-env prod && " in before, f"{page}: {block}")
                self.assertFalse(deploys and "policy boundary" in before, f"{page}: nobody could write the boundary's ARN into samconfig.toml before: {block}")

    def test_samconfig_undoes_a_change_of_the_command_line(self):
        """SAM keeps the stack's value of a parameter that samconfig.toml does not name."""
        found = [(e, p) for text in PAGES.values() for e, p in re.findall(r"sam deploy --config-env (\w+).* --parameter-overrides (\w+=\w+)", text)]
        self.assertTrue(found)
        for environment, override in found:
            named, (name, value) = environments()[f"signalbox-{environment}"], override.split("=")
            self.assertIn(name, named)
            self.assertNotEqual(Stack(**named).resources, Stack(**named | {name: value}).resources, f"{override} changes nothing")

    def test_names_are_defined_before_they_are_used(self):
        self.assertIn("\nhas() {", sections("deploy")["The shell"], "As an administrator names it")

    def test_a_role_that_exists_gets_the_new_trust(self):
        role = re.search(r"(?ms)^role\(\) .*?; }$", sections("deploy")["From GitHub"])[0]
        aws = 'SIGNALBOX_STACK=s; aws() { echo "$*"; [ "$2" != create-role ]; }'
        done = subprocess.run(["bash", "-euc", f"{aws}\n{role}\nrole deploy TRUST"], capture_output=True, text=True, check=False)
        self.assertIn("iam update-assume-role-policy --role-name deploy-s --policy-document TRUST", done.stdout)

    def test_a_stop_ends_with_the_reserved_concurrency(self):
        for page in PAGES:
            for heading, commands in sections(page).items():
                if "delete-function-concurrency" in commands:
                    self.assertIn("ReservedConcurrency", commands, heading)

    def test_what_counts_while_requests_are_stopped(self):
        """The checks of declared.py send none."""
        for check in CHECKS:
            if check.ask.__module__ == declared.__name__:
                self.assertRegex(PAGES["incidents"], f"Read .*`{check.name}`")


class Pipeline(unittest.TestCase):
    """.github/workflows/deploy.yml deploys a tested commit of main, under the service role, and verifies with other credentials."""

    def setUp(self):
        self.jobs = yaml.safe_load((SOURCE.parent / ".github/workflows/deploy.yml").read_text())["jobs"]

    def uses(self, action: str) -> dict[str, list[dict]]:
        """The inputs of an action's steps, by job."""
        found = {job: [s["with"] for s in body.get("steps", []) if s.get("uses", "").startswith(f"{action}@")] for job, body in self.jobs.items()}
        return {job: inputs for job, inputs in found.items() if inputs}

    def test_a_merged_and_tested_commit(self):
        self.assertEqual(self.jobs["commit"]["if"], "github.ref == 'refs/heads/main'")
        self.assertIn({"run": "git merge-base --is-ancestor HEAD origin/main"}, self.jobs["commit"]["steps"])
        self.assertLessEqual({"commit", "ci"}, set(self.jobs["build"]["needs"]))
        for job, inputs in self.uses("actions/checkout").items():
            ref = "${{ inputs.ref }}" if job == "commit" else "${{ needs.commit.outputs.sha }}"
            self.assertEqual([i["ref"] for i in inputs], [ref], job)

    def test_the_service_role(self):
        (step,) = [s for s in self.jobs["deploy"]["steps"] if "sam deploy" in s.get("run", "")]
        self.assertIn('--role-arn "$SERVICE_ROLE"', step["run"])
        self.assertEqual(step["env"]["SERVICE_ROLE"], "${{ vars.AWS_SERVICE_ROLE_ARN }}")

    def test_the_stack_is_the_one_of_samconfig(self):
        (step,) = [s for s in self.jobs["commit"]["steps"] if s.get("id") == "stack"]
        config = (SOURCE.parent / "samconfig.toml").read_text().replace("signalbox-", "another-")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "samconfig.toml").write_text(config)
            for environment, name in (("default", "another-dev"), ("staging", "another-staging"), ("prod", "another-prod")):
                output = pathlib.Path(folder) / environment
                subprocess.run(["bash", "-euc", step["run"]], cwd=folder, check=True, env=os.environ | {"CONFIG_ENV": environment, "GITHUB_OUTPUT": str(output)})
                self.assertEqual(output.read_text(), f"stack={name}\n")
        named = [s for job in self.jobs.values() for s in job.get("steps", []) if re.search("sam deploy|make verify", s.get("run", ""))]
        self.assertEqual([s["env"]["STACK"] for s in named], ["${{ needs.commit.outputs.stack }}"] * 2)
        for step in named:
            self.assertRegex(step["run"], r'--s3-prefix "\$STACK"$|STACK="\$STACK"$')

    def test_credentials_of_each_job(self):
        roles = {(job, self.jobs[job]["environment"]): [i["role-to-assume"] for i in inputs] for job, inputs in self.uses("aws-actions/configure-aws-credentials").items()}
        self.assertEqual(roles, {
            ("deploy", "${{ inputs.environment }}"): ["${{ vars.AWS_ROLE_ARN }}"],
            ("verify", "${{ inputs.environment }}-verify"): ["${{ vars.AWS_VERIFY_ROLE_ARN }}"],
        })
