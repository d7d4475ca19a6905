"""What no engine plays: the end of `make prove`, a canary, and the stacks that samconfig.toml names."""

import collections
import json
import re
import subprocess
import tomllib
import unittest
from unittest import mock

import cloud
import declared
import life
from account import ROOT, Account, Response
from checks import Differs, Failed
from stack import SOURCE, environments, source

ENVELOPE = '{"error":{"code":500,"message":"x","metadata":{"request_id":"r"}}}'
GOOD, CRASH, PLAIN = Response(200, {}, ""), Response(500, {"x-request-id": "r"}, ENVELOPE), Response(502, {}, "{}")


class Canary(unittest.TestCase):
    def test_a_tenth_crashes_and_is_rolled_back(self) -> None:
        tenth = lambda other, n: [other, *[GOOD] * 9] * n + [other]  # noqa: E731
        life.judge_canary([GOOD] * 50 + tenth(CRASH, 10) + [GOOD] * 50, "UPDATE_ROLLBACK_COMPLETE", "3", "3")
        for wrong, responses, status, after in (
            ("not rolled back", tenth(CRASH, 10), "UPDATE_COMPLETE", "4"),
            ("rolled back for another reason", [GOOD] * 100, "UPDATE_ROLLBACK_COMPLETE", "3"),
            ("nearly a half", [CRASH, GOOD] * 50, "UPDATE_ROLLBACK_COMPLETE", "3"),
            ("one in a thousand", [CRASH, *[GOOD] * 999, CRASH], "UPDATE_ROLLBACK_COMPLETE", "3"),
            ("not our envelope", tenth(PLAIN, 10), "UPDATE_ROLLBACK_COMPLETE", "3"),
        ):
            with self.subTest(wrong), self.assertRaises(Failed):
                life.judge_canary(responses, status, "3", after)


class Caller(unittest.TestCase):
    """An engine has the root user only."""

    def test_the_role_of_every_kind_of_caller(self) -> None:
        paths = {"prove": "/", "AWSReservedSSO_AdministratorAccess_0a1b": "/aws-reserved/sso.amazonaws.com/eu-central-1/"}
        account = Account.__new__(Account)
        account.client = mock.Mock()
        account.client.return_value.get_role = lambda RoleName: {"Role": {"Arn": f"arn:aws:iam::1:role{paths[RoleName]}{RoleName}"}}  # noqa: N803
        for name, path in paths.items():
            account.caller = f"arn:aws:sts::1:assumed-role/{name}/me@example.com"
            self.assertEqual(account.role(), f"arn:aws:iam::1:role{path}{name}")
        for account.caller in ("arn:aws:iam::1:root", "arn:aws:iam::1:user/team/me", "arn:aws:sts::1:federated-user/me"):
            self.assertEqual(account.role(), "")


class Packages(unittest.TestCase):
    def test_the_tool_runs_on_the_packages_of_its_tests(self) -> None:
        pins = lambda folder: set(re.findall(r"(?m)^[\w-]+==[\w.]+", (ROOT / folder / "requirements.txt").read_text()))  # noqa: E731
        self.assertLess(pins("infra/cloud"), pins("infra/test/second-opinion"))


class Parameters(unittest.TestCase):
    def test_sam_reads_samconfig_as_we_do(self) -> None:
        subprocess.run([ROOT / "infra/release/venv", ROOT / "infra/release", ROOT / ".build/sam"], check=True)
        config = tomllib.loads((SOURCE.parent / "samconfig.toml").read_text())
        given = [c["global"]["parameters"]["parameter_overrides"] for n, c in config.items() if n != "version"]
        read = "import json, sys; from samcli.cli.types import CfnParameterOverridesType as T; print(json.dumps([T().convert(v, None, None) for v in json.load(sys.stdin)]))"
        done = subprocess.run([ROOT / ".build/sam/bin/python", "-c", read], input=json.dumps([*given, ['RewrapRoleArn=""']]), capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(done.stdout), [*environments().values(), {"RewrapRoleArn": ""}])

    def verdict(self, check, stack: str, **subject):
        subject = mock.Mock(deployment=None, **subject)
        subject.name = stack
        subject.account.client.return_value.get_stack_policy.return_value = {}
        try:
            check(subject)
        except Failed as result:
            return type(result)

    def test_samconfig_is_the_law_for_the_stacks_that_it_names(self) -> None:
        found = {n: str(p.get("Default", "")) for n, p in source()["Parameters"].items()} | environments()["signalbox-prod"]
        stranger = {"RouterRoleArn": "arn:aws:iam::444455556666:role/stranger"}
        for stack, more, verdict in (
            ("signalbox-prod", {}, None), ("signalbox-prod", stranger, Failed), ("signalbox-prod", {"LogRetentionDays": "1"}, Failed),
            ("another", {}, Differs), ("another", stranger, Differs),
        ):
            self.assertIs(self.verdict(declared.parameters, stack, parameters=found | more), verdict, (stack, more))
        for stack, verdict in (("signalbox-prod", Failed), ("signalbox-staging", Failed), ("signalbox-dev", Differs), ("another", Differs)):
            self.assertIs(self.verdict(declared.protection, stack, undeletable=False), verdict, f"{stack}, unprotected")


class Company(unittest.TestCase):
    def test_a_fresh_account_that_demands_tags_and_a_boundary(self) -> None:
        account = mock.MagicMock(region="eu-central-1", id="1")
        account.stack.return_value = None
        account.role.return_value = ""
        account.client.return_value.get_account.return_value = {}
        deployment = life.Deployment(account, "dry", {"team": "platform"}, "arn:b")
        with mock.patch("sys.stderr") as said, mock.patch.object(deployment, "sam", return_value=mock.Mock(returncode=0)) as sam, mock.patch("life.Subject"):
            deployment.agree(True)
            deployment.deploy("own")
        self.assertIn("which stays", "".join(c.args[0] for c in said.write.call_args_list))
        self.assertLessEqual({"team=platform", f"{life.TAG}=dry", "GatewayLoggingRole=Create", "PermissionsBoundaryArn=arn:b"}, set(sam.call_args.args))


class Removal(unittest.TestCase):
    def account(self) -> mock.MagicMock:
        account = mock.MagicMock(region="us-east-1", id="1", partition="aws", caller="arn:aws:sts::1:assumed-role/prove/me")
        account.clients = collections.defaultdict(mock.MagicMock)
        account.client = account.clients.__getitem__
        return account

    def test_however_it_ends(self) -> None:
        for end in (None, KeyboardInterrupt, SystemExit, RuntimeError):
            with self.subTest(end=end), mock.patch("cloud.Deployment") as deployment, mock.patch("cloud.Cleaner") as cleaner, \
                    mock.patch("cloud.checked", return_value=[], side_effect=end), mock.patch("cloud.report", return_value=0):
                deployment.return_value.architectures = []
                try:
                    cloud.main(["run", "--stack", "dry", "--yes"], self.account)
                except BaseException as error:
                    self.assertIs(type(error), end)
                cleaner.return_value.clean.assert_called_once_with()

    def test_only_the_tag(self) -> None:
        account = self.account()
        account.stack.return_value = {"StackId": "s", "StackStatus": "UPDATE_COMPLETE", "Tags": [{"Key": life.TAG, "Value": "other"}]}
        with self.assertRaisesRegex(SystemExit, "prove did not make it"):
            life.Cleaner(account, "dry").clean()
        account.clients["cloudformation"].delete_stack.assert_not_called()

    def test_keys_go_last(self) -> None:
        """DynamoDB deletes a table only while its key can be used. An engine does not mind."""
        account, order = self.account(), []
        account.stack.return_value = None
        account.pages.return_value = [{"ResourceARN": f"arn:aws:{r}"} for r in ("kms:us-east-1:1:key/k", "dynamodb:us-east-1:1:table/t")]
        kms, db = account.clients["kms"], account.clients["dynamodb"]
        kms.describe_key.return_value = {"KeyMetadata": {"KeyState": "PendingDeletion"}}
        for client, operations in ((kms, ("enable_key", "schedule_key_deletion")), (db, ("delete_table",))):
            for operation in operations:
                getattr(client, operation).side_effect = lambda operation=operation, **_: order.append(operation)
        with mock.patch("life.until"):
            life.Cleaner(account, "dry").clean()
        self.assertEqual(order, ["enable_key", "delete_table", "schedule_key_deletion"])
