"""The runbook's commands run as they are written, with stand-ins for what they call.

Each section is followed from top to bottom in a shell of its own that has read the
runbook's first block and stops at a variable that nothing has assigned. What was
asked of AWS is then held against the API models that botocore brings along.
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

RUNBOOK = (SOURCE.parent / "infra/operations.md").read_text()

# Answers that a loop waits for or that a name is made of; the rest are one word.
AWS = """#!/bin/bash
printf '%s\\0' "$@" >>"$CALLS"
printf '\\n' >>"$CALLS"
case "$1 $2" in
*get-caller-identity) echo 111122223333 ;;
*describe-backup) echo AVAILABLE ;;
*get-template) echo '{"MaxReadRequestUnits": 1, "MaxWriteRequestUnits": 1}' ;;
*) echo stand-in ;;
esac
"""

OTHERS = ("admin", "curl", "gh", "install", "make", "sam", "sha256sum", "sleep", "tar")

GLOBAL = {"output", "query", "region"}


def sections() -> dict[str, str]:
    """The commands of each section, by its heading."""
    return {
        part.partition("\n")[0]: "\n".join(
            re.sub(rf"(?m)^{block[1]}", "", block[2])
            for block in re.finditer(r"(?ms)^( *)```sh\n(.*?)^ *```$", part)
        )
        for part in re.split(r"(?m)^## ", RUNBOOK)[1:]
    }


def follow(commands: str) -> tuple[str, list[list[str]]]:
    """What went wrong, if anything did, and the calls of aws."""
    with tempfile.TemporaryDirectory() as work:
        here = pathlib.Path(work)
        (here / "bin").mkdir()
        for name, text in {"aws": AWS, **dict.fromkeys(OTHERS, "#!/bin/bash\n")}.items():
            (here / "bin" / name).write_text(text)
            (here / "bin" / name).chmod(0o755)
        shutil.copytree(SOURCE.parent / "infra", here / "infra", ignore=lambda folder, names: [
            n for n in names if not n.endswith(".json") or pathlib.Path(folder).name != "infra"
        ])
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
        cls.sections = sections()
        cls.first = cls.sections["The shell these commands run in"]
        cls.session = botocore.session.get_session()

    def test_each_section_can_be_followed(self):
        for heading, commands in self.sections.items():
            with self.subTest(heading):
                wrong, calls = follow(f"{self.first}\n{commands}")
                self.assertEqual(wrong, "")
                for call in calls:
                    self.check(call)

    def test_no_command_has_a_gap_to_fill_in(self):
        for heading, commands in self.sections.items():
            for line in commands.splitlines():
                with self.subTest(f"{heading}: {line}"):
                    self.assertNotRegex(line.partition(" #")[0], r"…|\b(NAME|ID|ACCOUNT|OWNER)\b(?!/)")

    def check(self, call: list[str]):
        self.assertNotIn("", call)
        service, operation, *rest = call
        if service == "s3":
            return  # made of other calls, with arguments of its own
        if operation == "wait":
            waiters = [xform_name(w, "-") for w in self.session.get_waiter_model(service).waiter_names]
            self.assertIn(rest.pop(0), waiters, call)
            return
        model = self.session.get_service_model(service.removesuffix("api"))
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


if __name__ == "__main__":
    unittest.main()
