"""Runs the checks against the stand-in: right answers pass, and each lie fails its check.

A lie is one wrong answer of AWS. To add one, add a row to LIES.
"""

import collections
import dataclasses
import json
import os
import re
import tempfile
import time
import unittest
from unittest import mock

from account import Answer
import declared
import life
import observed
import cloud
from behaviour import works
from checks import CHANGED, CHECKS, DIFFERS, FAIL, LIVE, NOT_CHECKED, OWN, PASS, Check, Failed, Report, make
from standin import Edition, StandIn
from translate import source


def text(pattern: str, new: str):
    """Replaces text in the whole answer."""
    return lambda answer, _: json.loads(re.sub(pattern, new, json.dumps(answer)))


def without(member: str, keep):
    """Keeps those elements of a list for which keep is true."""

    return lambda answer, _: answer | {member: [e for e in answer[member] if keep(e)]}


def api(when, **fields):
    """Changes the API's answers to some requests."""

    def lie(answer: Answer, request):
        return dataclasses.replace(answer, **fields) if when(answer, *request) else answer

    return lie


def role(change):
    """Changes the properties of each role."""

    def lie(answer, asked):
        properties = json.loads(answer["ResourceDescription"]["Properties"])
        if asked["TypeName"] == "AWS::IAM::Role":
            change(properties)
        return {"ResourceDescription": {"Properties": json.dumps(properties)}}

    return lie


line = lambda new: lambda answer, arguments: {"events": answer["events"] + [{"message": new}]}  # noqa: E731


def missing(*_):
    raise RuntimeError("NoSuchEntity")


ENVELOPE = '{{"error":{{"code":{0},"message":"x","metadata":{{"request_id":"r"}}}}}}'.format
alarm = lambda e: "Alarm" not in e["LogicalResourceId"] or "ServerErrors" in e["LogicalResourceId"]  # noqa: E731
DRIFTS = "cloudformation.describe_stack_resource_drifts"
READ = "cloudcontrol.get_resource"

# The check, the operation that lies, the lie, the verdict.
LIES = [
    ("status", "cloudformation.describe_stacks", text("UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"), FAIL),
    ("template", "cloudformation.get_template", text("status >= 500", "status >= 900"), FAIL),
    ("template", "cloudformation.get_template", text("kms:GenerateDataKey", "kms:*"), FAIL),
    ("parameters", "cloudformation.describe_stacks", text('"DeleteBurst", "ParameterValue": "20"', '"DeleteBurst", "ParameterValue": "21"'), DIFFERS),
    ("drift", DRIFTS, text('("AccessTable", "StackResourceDriftStatus": )"IN_SYNC"', r'\1"MODIFIED"'), FAIL),
    ("drift", DRIFTS, text('("ServerErrorsAlarm", "StackResourceDriftStatus": )"IN_SYNC"', r'\1"DELETED"'), FAIL),
    ("drift", DRIFTS, without("StackResourceDrifts", alarm), FAIL),
    ("policies", READ, missing, FAIL),
    ("policies", READ, text("GenerateDataKey", "Decrypt"), FAIL),
    ("policies", READ, text("signalbox/credential", "anything"), FAIL),
    ("policies", READ, text("signalbox/credential", "Signalbox/credential"), FAIL),
    ("policies", READ, role(lambda p: p["Policies"].append({"PolicyName": "more", "PolicyDocument": {}})), FAIL),
    ("policies", READ, role(lambda p: p.update(ManagedPolicyArns=["arn:aws:iam::aws:policy/AdministratorAccess"])), FAIL),
    ("policies", READ, role(lambda p: p["AssumeRolePolicyDocument"]["Statement"].append({})), FAIL),
    ("large-body", "api", api(lambda a, m, p, k, body: body and len(body) > 6 << 20, status=413, body='{"message":"Too Long"}'), DIFFERS),
    ("large-body", "api", api(lambda a, m, p, k, body: body and len(body) > 6 << 20, status=201, body='{"data":{}}'), FAIL),
    ("sealing", "kms.decrypt", lambda a, _: a | {"Plaintext": bytes(32)}, FAIL),
    ("secrets-in-logs", "logs.filter_log_events", line("sk-zQ7-marker-mX4w-AbCd"), FAIL),
    ("secrets-in-logs", "logs.filter_log_events", line("Bearer sbx_0123456789abcdefghijklmnop"), FAIL),
    ("secrets-in-logs", "logs.filter_log_events", lambda a, _: {"events": []}, FAIL),
    ("secrets-in-logs", "logs.filter_log_events", lambda a, asked: {"events": []} if "Access" in asked["logGroupName"] else a, FAIL),
    ("secrets-in-logs", "api", api(lambda a, method, *_: method == "GET", status=500), FAIL),
    ("metric-filters", "cloudwatch.get_metric_data", text("1.0", ""), FAIL),
    ("latency", "logs.filter_log_events", text(r'"duration_ms\\":[0-9.]+', r'"duration_ms\\":2500'), FAIL),
    ("code", "lambda.get_function", text("x86_64", "arm64"), FAIL),
]


class Checks(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="prove-"))
        edition = Edition(folder)
        cls.addClassCleanup(edition.close)
        for name in observed.OPERATIONS:
            observed._built(name + "Function", "x86_64")
        cls.aws = StandIn(edition)

        cls.tenant = cls.aws.subject()
        cls.tenant.make_tenant()
        declared.declared(cls.tenant)
        works(cls.tenant)  # so that each function has logged a request

    @classmethod
    def tearDownClass(cls) -> None:
        cls.aws.lies = {}
        cls.tenant.remove_tenants()
        for table, pk in (("Access", f"account#{cls.tenant.tenant}"), ("Credentials", f"workspace#{cls.tenant.workspace}")):
            assert not cls.tenant._rows(table, pk), "rows are left"

    def report(self, name: str) -> Report:
        """Makes a check."""
        subject = self.aws.subject()
        kept = ("tenant", "workspace", "management", "standard", "job", "secrets")
        if not any(operation.startswith("cloudformation") for operation in self.aws.lies):
            kept += ("declared",)  # translating its template takes a second
        for attribute in kept:
            setattr(subject, attribute, getattr(self.tenant, attribute))
        (report,) = make([c for c in CHECKS if c.name == name], subject)
        return report

    def test_verify(self) -> None:
        """The whole of `make verify`, the contract suite included, at the default parameters."""
        self.aws.lies = {}
        expected = {"tls": NOT_CHECKED, "parameters": DIFFERS}  # the edition has no TLS, and runs on x86_64
        subject, reported = self.aws.subject(), []
        with mock.patch("cloud.Subject", return_value=subject), mock.patch.dict(os.environ, self.aws.edition.environment()), \
                mock.patch("cloud.markdown", side_effect=lambda title, reports: reported.extend(reports) or title):
            self.assertEqual(cloud.main(["verify", "--stack", "signalbox-dry", "--patience", "5"], lambda: self.aws), 0)
        for report in reported:
            with self.subTest(report.check.name):
                self.assertEqual(report.verdict, expected.get(report.check.name, PASS), report.seen)
        self.assertEqual([r.check.name for r in reported], [c.name for c in sorted(CHECKS, key=Check.order) if c.stage == LIVE])
        self.assertEqual(subject._rows("Access", f"account#{subject.tenant}"), [], "rows are left")

    def test_every_check_has_a_lie(self) -> None:
        told = {name for name, *_ in LIES} | {"tls", "contract"}
        self.assertEqual({c.name for c in CHECKS if c.stage == LIVE}, told)

    def test_lies(self) -> None:
        for name, operation, lie, verdict in LIES:
            with self.subTest(check=name, lies=operation):
                self.aws.lies = {operation: lie}
                self.addCleanup(setattr, self.aws, "lies", {})
                report = self.report(name)
                self.assertEqual(report.verdict, verdict, report.seen)
                self.assertNotIn("sbx_", report.seen)

    def test_contract_results(self) -> None:
        printed = "\n".join(json.dumps({"Action": a, "Test": t}) for t, a in (
            ("TestA", "fail"), ("TestA/one", "fail"), ("TestA/two", "pass"), ("TestB", "pass"), ("TestC", "skip"), ("TestD", "fail"), ("TestD/x", "pass"),
        ))
        self.assertEqual(observed.results(printed), {"fail": ["TestA/one", "TestD"], "pass": ["TestA/two", "TestB", "TestD/x"], "skip": ["TestC"]})


class Rules(unittest.TestCase):
    def test_canonical(self) -> None:
        one = {"Statement": [{"Effect": "Allow", "Action": "a", "Resource": ["y", "x"], "Condition": {"Bool": {"k": True}}}]}
        same = {"Statement": {"Effect": "Allow", "Action": ["a"], "Resource": ["x", "y"], "Condition": {"Bool": {"k": "true"}}}}
        self.assertEqual(declared.canonical(one), declared.canonical({"Statement": [same["Statement"]]}))
        self.assertNotEqual(declared.canonical(one), declared.canonical({"Statement": [same["Statement"] | {"Effect": "Deny"}]}))
        allow, deny = [("Effect", "Allow"), ("Sid", "b")], [("Effect", "Deny"), ("Sid", "a")]
        self.assertEqual(*(declared.canonical([dict(a), dict(b)]) for a, b in ((allow, deny), (allow[::-1], deny))))

    good, crash = Answer(200, {}, ""), Answer(500, {"x-request-id": "r"}, ENVELOPE(500))
    plain = Answer(502, {}, '{"message": "Internal server error"}')

    def test_canary(self) -> None:
        life.judge_canary([self.good] * 9 + [self.crash], "UPDATE_ROLLBACK_COMPLETE", "3", "3")
        for answers, status, after in (
            ([self.good] * 9 + [self.crash], "UPDATE_COMPLETE", "4"),  # not rolled back
            ([self.good] * 9, "UPDATE_ROLLBACK_COMPLETE", "3"),  # rolled back for another reason
            ([self.good] + [self.crash] * 9, "UPDATE_ROLLBACK_COMPLETE", "3"),  # all requests instead of a part
            ([self.good] * 9 + [self.plain], "UPDATE_ROLLBACK_COMPLETE", "3"),  # not our envelope
        ):
            with self.subTest(status=status), self.assertRaises(Failed):
                life.judge_canary(answers, status, "3", after)


class Life(unittest.TestCase):
    """Every end of `make prove` removes everything that it made."""

    def account(self) -> mock.MagicMock:
        account = mock.MagicMock(region="us-east-1", id="1", partition="aws", caller="arn:aws:sts::1:assumed-role/prove/me")
        account.clients = collections.defaultdict(mock.MagicMock)
        account.client = account.clients.__getitem__
        return account

    def test_removed_however_it_ends(self) -> None:
        for end in (None, KeyboardInterrupt, SystemExit, RuntimeError):
            with self.subTest(end=end), mock.patch("cloud.Deployment") as deployment, mock.patch("cloud.Cleaner") as cleaner, \
                    mock.patch("cloud.checked", return_value=[], side_effect=end), mock.patch("cloud.report", return_value=0):
                deployment.return_value.architectures = []
                try:
                    cloud.main(["run", "--stack", "dry", "--yes"], self.account)
                except BaseException as error:
                    self.assertIs(type(error), end)
                cleaner.return_value.clean.assert_called_once_with()

    def test_only_the_tag_is_deleted(self) -> None:
        account = self.account()
        account.stack.return_value = {"StackId": "s", "StackStatus": "UPDATE_COMPLETE", "Tags": [{"Key": life.TAG, "Value": "other"}]}
        with self.assertRaisesRegex(SystemExit, "prove did not make it"):
            life.Cleaner(account, "dry").clean()
        account.clients["cloudformation"].delete_stack.assert_not_called()

    def test_keys_go_last(self) -> None:
        account, order = self.account(), []
        account.stack.side_effect = [
            {"StackId": "s", "StackStatus": "UPDATE_IN_PROGRESS", "Tags": [{"Key": life.TAG, "Value": "dry"}]},
            {"StackStatus": "UPDATE_IN_PROGRESS"}, {"StackStatus": "UPDATE_COMPLETE"}, {"StackStatus": "DELETE_IN_PROGRESS"}, None,
        ]
        account.pages.return_value = [{"ResourceARN": f"arn:aws:{r}"} for r in (
            "kms:us-east-1:1:key/k", "dynamodb:us-east-1:1:table/t", "s3:::b", "logs:us-east-1:1:log-group:/g:*", "sqs:us-east-1:1:q",
        )]
        kms, db = account.clients["kms"], account.clients["dynamodb"]
        kms.describe_key.return_value = {"KeyMetadata": {"KeyState": "PendingDeletion"}}
        db.describe_table.return_value = {"Table": {"DeletionProtectionEnabled": True, "TableStatus": "ACTIVE"}}
        for client, operations in {
            "cloudformation": ["delete_stack"], "kms": ["enable_key", "schedule_key_deletion"], "dynamodb": ["update_table", "delete_table"],
            "s3": ["delete_bucket"], "logs": ["delete_log_group"], "sqs": ["delete_queue"],
        }.items():
            for operation in operations:
                getattr(account.clients[client], operation).side_effect = lambda operation=operation, **_: order.append(operation)
        with mock.patch("time.sleep"):
            life.Cleaner(account, "dry").clean()
        self.assertEqual(order, [
            "delete_stack", "enable_key", "update_table", "delete_table", "delete_bucket", "delete_log_group", "delete_queue", "schedule_key_deletion",
        ])

    def test_deployments(self) -> None:
        """The calls of the SAM CLI for both deployments."""
        account = self.account()
        deployment, called = life.Deployment(account, "dry", "arm64"), []
        deployment.sam = lambda *a: called.append(" ".join(a)) or mock.MagicMock(returncode=0)
        with mock.patch("life.Subject"):
            deployment.prepare()
            for stage in (OWN, CHANGED):
                deployment.deploy(stage)
        self.assertEqual([c.split()[0] for c in called], ["build", "build", "deploy", "deploy"])
        self.assertRegex(called[2], "--tags signalbox:prove=dry .*Architecture=arm64 .*RouterRoleArn=arn:aws:iam::1:role/prove")
        self.assertRegex(called[3], "Architecture=x86_64 .*FilesVersioning=Enabled")
        self.assertLessEqual(deployment.parameters.keys(), source()["Parameters"].keys())


if __name__ == "__main__":
    unittest.main()
