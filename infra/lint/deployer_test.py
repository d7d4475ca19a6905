"""infra/deployer-policy.json deploys every resource of the template and reads no data.

CloudFormation's resource schemas name the permissions that each type needs; cfn-lint
brings them along.
"""

import fnmatch
import importlib.resources
import json
import re
import unittest

from first_deployment_test import ALL
from stack import Stack
from translate import SOURCE

# Properties that the template does not use, and services it does not touch. The
# schemas do not say which property needs which permission.
UNUSED = re.compile(
    r"dynamodb:(.*(Replica|Kinesis|Import).*|BatchWriteItem|(Delete|Put)ResourcePolicy|UpdateContributorInsights"
    r"|DeleteItem|GetItem|PutItem|Query|Scan|UpdateItem)"
    r"|iam:(.*(Group|User)Policy|DescribeOrganization)"
    r"|kms:(DisableKey|DisableKeyRotation|EnableKey)"
    r"|lambda:(.*(CodeSigning|CapacityProvider|LayerVersion|RuntimeAlias|FunctionConcurrency).*"
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

# What reads or changes data, by itself or through a function that it invokes.
DATA = [
    "dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem",
    "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem", "kms:Decrypt", "kms:GenerateDataKey",
    "kms:ReEncryptFrom", "lambda:InvokeFunction", "logs:GetLogEvents", "logs:FilterLogEvents",
]


def schemas() -> dict[str, dict]:
    folder = importlib.resources.files("cfnlint.data.schemas") / "resources"
    found = (json.loads(file.read_text()) for file in folder.iterdir() if file.name.endswith(".json"))
    return {s["typeName"]: s for s in found if isinstance(s, dict) and "typeName" in s}


class Deployer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.statements = json.loads((SOURCE.parent / "infra/deployer-policy.json").read_text())["Statement"]

    def allows(self, action: str) -> list[dict]:
        return [
            s for s in self.statements
            if action in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])
        ]

    def test_it_deploys_every_resource(self):
        known = schemas()
        for kind in {r["Type"] for r in Stack(**ALL).resources.values()}:
            handlers = known[kind].get("handlers", {})
            for verb in ("create", "read", "update", "delete"):
                for action in handlers.get(verb, {}).get("permissions", []):
                    with self.subTest(f"{verb} {kind}: {action}"):
                        self.assertTrue(self.allows(action) or UNUSED.fullmatch(action))

    def test_it_names_its_actions(self):
        for statement in self.statements:
            self.assertNotIn("*", json.dumps(statement["Action"]), statement["Sid"])
            self.assertEqual(statement["Effect"], "Allow")

    def test_it_fits_into_a_role(self):
        policy = json.dumps(self.statements, separators=(",", ":"))
        for placeholder, length in (("ACCOUNT", 12), ("REGION", 14), ("STACK", 20)):
            policy = policy.replace(placeholder, "x" * length)
        self.assertLess(len(policy), 10_240)

    def test_it_cannot_change_its_own_role(self):
        runbook = (SOURCE.parent / "infra/operations.md").read_text()
        (role,) = re.findall(r"(?m)^ *DEPLOYER=(\S+)", runbook)
        self.assertFalse(fnmatch.fnmatch(role.replace("$SIGNALBOX_STACK", "STACK"), "STACK-*"))

    def test_it_reads_no_data(self):
        for action in DATA:
            for statement in self.allows(action):
                service = statement["Condition"]["StringEquals"]["kms:ViaService"]
                self.assertEqual(service, "dynamodb.REGION.amazonaws.com")

    def test_objects_are_those_of_the_artifacts(self):
        for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
            for statement in self.allows(action):
                for resource in statement["Resource"]:
                    self.assertTrue(fnmatch.fnmatch(resource, "arn:aws:s3:::aws-sam-cli-managed-default-*"))


if __name__ == "__main__":
    unittest.main()
