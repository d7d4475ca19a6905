"""A failed first deployment leaves nothing that hinders the next one.

CloudFormation deletes the resources that it created. It cannot delete a protected
table, so a protected table that is not retained ends the rollback in ROLLBACK_FAILED.
"""

import json
import unittest

import networkx
from cfnlint.template import Template

from stack import SOURCE, Stack


# Every condition of the template holds.
ALL = {
    "AlarmEmail": "ops@example.com",
    "CertificateArn": "arn:aws:acm:eu-central-1:111122223333:certificate/c",
    "DomainName": "signalbox.example.com",
    "FilesVersioning": "Enabled",
    "Firewall": "On",
    "GatewayLoggingRole": "Create",
    "HostedZoneId": "Z1",
}

STATEFUL = {
    "AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::Logs::LogGroup",
    "AWS::S3::Bucket", "AWS::S3::BucketPolicy",
}

# All other STATEFUL resources follow the rule in the test below.
EXCEPTIONS = {
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


class Rollback(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack(**ALL)

    def policies(self, name: str) -> tuple[str, str]:
        resource = self.stack.resources[name]
        return tuple(resource.get(p, "Delete") for p in ("DeletionPolicy", "UpdateReplacePolicy"))

    def protected(self, name: str) -> bool:
        properties = self.stack.properties(name)
        return str(properties.get("DeletionProtectionEnabled", False)).lower() != "false"

    def test_resources_with_data_are_kept_but_not_after_a_failed_creation(self):
        for name, resource in self.stack.resources.items():
            if resource["Type"] in STATEFUL or name in EXCEPTIONS:
                rule = ("Retain" if self.protected(name) else "RetainExceptOnCreate", "Retain")
                self.assertEqual(self.policies(name), EXCEPTIONS.get(name, rule), name)

    def test_no_update_replaces_or_removes_tables_keys_and_bucket(self):
        policy = json.loads((SOURCE.parent / "infra/stack-policy.json").read_text())
        (denied,) = [s for s in policy["Statement"] if s["Effect"] == "Deny"]
        self.assertEqual(set(denied["Action"]), {"Update:Replace", "Update:Delete"})
        types = {t for t in STATEFUL if t not in ("AWS::Logs::LogGroup", "AWS::S3::BucketPolicy")}
        self.assertEqual(set(denied["Condition"]["StringEquals"]["ResourceType"]), types)

    def test_every_table_with_lasting_data_is_protected(self):
        tables = self.stack.of_type("AWS::DynamoDB::Table")
        self.assertEqual({t for t in tables if not self.protected(t)}, {"ControlTable"})

    def test_only_the_control_tables_rows_expire(self):
        expiring = {t: self.stack.properties(t).get("TimeToLiveSpecification") for t in self.stack.of_type("AWS::DynamoDB::Table")}
        self.assertEqual({t: e for t, e in expiring.items() if e}, {"ControlTable": {"AttributeName": "exp", "Enabled": True}})

    def test_keys_rotate_each_year_and_wait_a_month_before_they_go(self):
        for name in self.stack.of_type("AWS::KMS::Key"):
            key = self.stack.properties(name)
            self.assertEqual((key["EnableKeyRotation"], key["RotationPeriodInDays"], key["PendingWindowInDays"]), (True, 365, 30), name)

    def test_the_bucket_removes_the_remains_of_deletions_and_uploads(self):
        rules = {rule["Id"]: rule for rule in Stack(FilesVersionsDays="7").properties("FilesBucket")["LifecycleConfiguration"]["Rules"]}
        self.assertEqual({rule["Status"] for rule in rules.values()}, {"Enabled"})
        self.assertEqual(rules["noncurrent-versions"]["NoncurrentVersionExpiration"], {"NoncurrentDays": "7"})
        self.assertEqual(rules["delete-markers"]["ExpiredObjectDeleteMarker"], True)
        self.assertEqual(rules["incomplete-uploads"]["AbortIncompleteMultipartUpload"], {"DaysAfterInitiation": 1})


class Order(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack(**ALL)

    def waits_for(self, name: str) -> set[str]:
        """The resources that exist before this one is created."""
        graph = Template("", {"Resources": self.stack.resources}).graph.graph
        return networkx.descendants(graph, name)

    def test_the_gateways_logging_waits_for_an_api_and_the_stage_for_the_logging(self):
        self.assertIn("Api", self.waits_for("GatewayLogging"))
        self.assertIn("GatewayLogging", self.waits_for("ApiStage"))
