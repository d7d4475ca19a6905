"""The commands of infra/operations, run as written: with the real AWS CLI and admin, against an engine.

Each section runs from top to bottom in a fresh shell, after the block of "The shell" and what its page
needs first. It stops at a command that fails, and at an unassigned variable. Ids that a page makes up
are replaced by ids of the stack.
"""

import atexit
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from account import ROOT

PAGES = {path.stem: path.read_text() for path in (ROOT / "infra/operations").glob("*.md")}
# What every section of a page needs first: names and functions.
BEFORE = {"incidents": ("Ask the logs", r"(?ms)^saved.*?^}$"), "restore": ("Before you begin", r"(?s)\A.*\Z")}

# What the engine lacks, with the answer that a loop or a name needs. The real CLI checks the arguments
# all the same, and prints what is wrong.
LACKS = {
    "cloudformation continue-update-rollback": "",  # no rollback of the engine fails
    "deploy list-deployments": "None",
    "health describe-events": "",
    "logs describe-query-definitions": "",
    "service-quotas request-service-quota-increase": "",
    "xray get-trace-summaries": "",
}

AWS = """#!/bin/bash
exec 3<>"/dev/tcp/127.0.0.1/$AWS_CLI"
printf '%s\\0' $(($# + 1)) "$SCRATCH" "$@" >&3
read -r code <&3
if [ $code != 0 ] && ! grep -qE '^(usage|Error parsing)' "$SCRATCH/err" && lacks=$(grep -- "^$1 $2 " "$SCRATCH/lacks"); then echo "${lacks#"$1 $2 "}"; exit 0; fi
cat "$SCRATCH/err" >&2
cat "$SCRATCH/out"
exit $code
"""

# Nobody is there to be asked.
ADMIN = """#!/bin/bash
case "$*" in *--dry-run*) ;; *\\ delete\\ *|*\\ purge\\ *|*\\ repair\\ *|*\\ erase\\ *|account\\ disable\\ *) set -- "$@" --yes ;; esac
exec "$REAL_ADMIN" "$@"
"""

GH = "#!/bin/bash\necho 1001 2002\n"  # the numbers of owner and repository

# The page protects the stack again after a change.
MAKE = """#!/bin/bash
[ "$1" != protect ] || exec "$REAL_MAKE" --silent -C "$ROOT" "$@"
"""

OTHERS = ("curl", "install", "sam", "sleep", "tar")


@functools.cache
def aws_cli() -> str:
    """The port of the AWS CLI, which ends with this process."""
    services = set(re.findall(r"\baws ([a-z0-9]+) ", "".join(PAGES.values())))
    server = subprocess.Popen(
        [sys.executable, "-B", pathlib.Path(__file__).with_name("aws_cli.py"), *services], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"AWS_MAX_ATTEMPTS": "1"},
    )
    atexit.register(server.kill)
    return server.stdout.readline().strip()


def sections(page: str) -> dict[str, str]:
    """The commands of each section, by its heading."""
    return {
        part.partition("\n")[0]: "\n".join(
            re.sub(rf"(?m)^{block[1]}", "", block[2])
            for block in re.finditer(r"(?ms)^( *)```sh\n(.*?)^ *```$", part)
        )
        for part in re.split(r"(?m)^## ", PAGES[page])[1:]
    }


def follow(page: str, headings: list[str], stack: str, real: dict[str, str], answers: dict[str, str] = {}, **environment: str) -> str:
    """Runs sections with the patterns in real replaced. Returns what went wrong, or ""."""
    parts = [sections("deploy")["The shell"]]
    if page in BEFORE and headings[0] not in (BEFORE[page][0], "A new stack on retained data"):  # that has no stack yet
        section, needed = BEFORE[page]
        parts += re.findall(needed, sections(page)[section])
    commands = "\n".join((*parts, *((sections("incidents") | sections(page))[heading] for heading in headings)))
    for pattern, value in {"signalbox-prod": stack, "(?<=AWS_REGION=)[a-z0-9-]+": os.environ["AWS_REGION"], **real}.items():
        commands = re.sub(pattern, value, commands)
    with tempfile.TemporaryDirectory() as work:
        here = pathlib.Path(work)
        (here / "infra").symlink_to(ROOT / "infra")
        (here / "lacks").write_text("".join(f"{command} {answer}\n" for command, answer in (LACKS | answers).items()))
        (here / ".build").mkdir()  # the page puts it first in PATH
        for name, text in {"aws": AWS, "admin": ADMIN, "gh": GH, "make": MAKE, **dict.fromkeys(OTHERS, "#!/bin/bash\n")}.items():
            (here / ".build" / name).write_text(text)
            (here / ".build" / name).chmod(0o755)
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands], cwd=here, text=True, capture_output=True, timeout=300, stdin=subprocess.DEVNULL,
            env=os.environ | environment | {
                "PATH": f"{here}/.build:{os.environ['PATH']}", "SCRATCH": str(here), "AWS_CLI": aws_cli(), "REAL_ADMIN": str(ROOT / ".build/admin"),
                "REAL_MAKE": shutil.which("make"), "ROOT": str(ROOT),
            },
        )
        return f"exit code {ran.returncode}: {ran.stdout[-300:]}{ran.stderr[-700:]}" if ran.returncode else ""
