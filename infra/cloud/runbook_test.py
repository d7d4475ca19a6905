"""The commands in infra/operations run as written, with stand-ins for the programs they call.

Each section runs from top to bottom in a fresh shell, after the block of "The shell" and, on some
pages, the page's first block. It stops at an unassigned variable. The AWS calls are then compared
with botocore's API models.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import botocore.session
from botocore import xform_name

from translate import SOURCE

PAGES = {path.stem: path.read_text() for path in (SOURCE.parent / "infra/operations").glob("*.md")}

# The answers that a loop or a name needs; every other answer is one word.
AWS = """#!/bin/bash
printf '%s\\0' "$@" >>"$CALLS"
printf '\\n' >>"$CALLS"
case "$1 $2" in
*get-caller-identity) echo 111122223333 ;;
*describe-backup) echo AVAILABLE ;;
*describe-table) echo ACTIVE ;;
*get-template) echo '{"MaxReadRequestUnits": 1, "MaxWriteRequestUnits": 1}' ;;
*) echo stand-in ;;
esac
"""

GH = """#!/bin/bash
case "$*" in *--jq*) echo 1001 2002 ;; esac
"""

OTHERS = ("admin", "curl", "install", "make", "sam", "sleep", "tar")

# The AWS CLI's names for services that have another name in its models.
SERVICES = {"deploy": "codedeploy", "s3api": "s3"}

GLOBAL = {"output", "query", "region"}


def sections(page: str) -> dict[str, str]:
    """The commands of each section, by its heading."""
    return {
        part.partition("\n")[0]: "\n".join(
            re.sub(rf"(?m)^{block[1]}", "", block[2])
            for block in re.finditer(r"(?ms)^( *)```sh\n(.*?)^ *```$", part)
        )
        for part in re.split(r"(?m)^## ", page)[1:]
    }


def follow(commands: str) -> tuple[str, list[list[str]]]:
    """The error, if any, and the calls to aws."""
    with tempfile.TemporaryDirectory() as work:
        here = pathlib.Path(work)
        (here / "bin").mkdir()
        for name, text in {"aws": AWS, "gh": GH, **dict.fromkeys(OTHERS, "#!/bin/bash\n")}.items():
            (here / "bin" / name).write_text(text)
            (here / "bin" / name).chmod(0o755)
        shutil.copytree(SOURCE.parent / "infra", here / "infra", ignore=lambda folder, names: [
            n for n in names if not n.endswith(".json") or pathlib.Path(folder).name != "infra"
        ])
        (here / "infra/cloud").mkdir()
        (here / "infra/cloud/adopt").symlink_to(here / "bin/make")
        calls = here / "calls"
        calls.touch()
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=here, text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
            env={"PATH": f"{here}/bin:{os.defpath}", "CALLS": str(calls)},
        )
        lines = calls.read_text().split("\0\n")[:-1]
        return ran.stderr if ran.returncode else "", [line.split("\0") for line in lines]


class Runbook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = sections(PAGES["deploy"])["The shell"]
        cls.session = botocore.session.get_session()

    def test_each_section_can_be_followed(self):
        for page, text in PAGES.items():
            before = sections(text).get({"incidents": "Ask the logs", "restore": "Before you begin"}.get(page), "")
            for heading, commands in sections(text).items():
                with self.subTest(f"{page}: {heading}"):
                    wrong, calls = follow(f"{self.shell}\n{before}\n{commands}")
                    self.assertEqual(wrong, "")
                    for call in calls:
                        self.check(call)

    def test_the_roles_trust_one_repository_in_both_forms_of_its_name(self):
        _, calls = follow(f"{self.shell}\n{sections(PAGES['deploy'])['From GitHub']}")
        trusts = {c[c.index("--role-name") + 1]: json.loads(c[c.index("--assume-role-policy-document") + 1]) for c in calls if c[1] == "create-role"}
        for name, environment in (("deploy-signalbox-prod", "prod"), ("verify-signalbox-prod", "prod-verify")):
            condition = trusts[name]["Statement"][0]["Condition"]
            self.assertEqual(set(condition), {"StringEquals"})
            self.assertEqual(condition["StringEquals"]["token.actions.githubusercontent.com:sub"], [
                f"repo:example/signalbox:environment:{environment}", f"repo:example@1001/signalbox@2002:environment:{environment}"])
        for call in calls:
            if call[1] == "put-role-policy":
                self.assertNotRegex(call[-1], "ACCOUNT|REGION|STACK|REST_ID|_KEY|DOMAIN|ZONE")

    def test_no_command_has_a_gap_to_fill_in(self):
        for page, text in PAGES.items():
            for commands in sections(text).values():
                for line in commands.splitlines():
                    with self.subTest(f"{page}: {line}"):
                        self.assertNotRegex(line.partition(" #")[0], r"…|\b(NAME|ID|ACCOUNT|OWNER)\b(?!/)")

    def test_links_lead_to_headings(self):
        anchors = {page: {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"(?m)^##+ (.*)$", text)} for page, text in PAGES.items()}
        for page, text in PAGES.items():
            for other, anchor in re.findall(r"\]\((?:(\w+)\.md)?#([^)]*)\)", text):
                self.assertIn(anchor, anchors[other or page], page)

    def check(self, call: list[str]):
        self.assertNotIn("", call)
        service, operation, *rest = call
        if service == "s3":
            return  # not an API operation: the CLI has no model for it
        if operation == "wait":
            waiters = [xform_name(w, "-") for w in self.session.get_waiter_model(service).waiter_names]
            self.assertIn(rest.pop(0), waiters, call)
            return
        service = SERVICES.get(service, service)
        model = self.session.get_service_model(service)
        operations = {xform_name(name, "-"): name for name in model.operation_names}
        self.assertIn(operation, operations, call)
        shape = model.operation_model(operations[operation]).input_shape
        members = {xform_name(m, "-"): m for m in shape.members}
        given = [word.removeprefix("--") for word in rest if word.startswith("--")]
        given = [g if g in members else g.removeprefix("no-") for g in given if g not in GLOBAL]
        self.assertLessEqual(set(given), set(members), call)
        self.assertLessEqual(set(shape.required_members), {members[g] for g in given}, call)
        for word in rest:
            if word.startswith("{"):
                json.loads(word)
