"""The commands of infra/operations, run as written: with the real AWS CLI and admin, against an engine.

Each section runs in a fresh shell, block by block, after that of "The shell" and what its page needs
first. It stops at a command that fails, and at an unassigned variable. A variable to which a page
assigns an example gets a value of the rehearsal.
"""

import atexit
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from account import ROOT, WORK

PAGES = {path.stem: path.read_text() for path in (ROOT / "infra/operations").glob("*.md")}
# No page shows these.
ENVIRONMENT, REPOSITORY = "rehearsal", "somebody/else"
# The variables that the pages set in GitHub.
VARIABLES = WORK / "variables"

# What the engine lacks, with the answer that a loop or a name needs. The real CLI checks the arguments
# all the same, and prints what is wrong.
LACKS = {
    "cloudformation continue-update-rollback": "",  # no rollback of the engine fails
    "deploy list-deployments": "None",
    "health describe-events": "",
    "logs describe-query-definitions": "none",
    "logs start-query": "none",
    "logs get-query-results": "",
    "xray get-trace-summaries": "",
}

AWS = """#!/bin/bash
case "$2" in
restore-table-from-backup) /bin/sleep 1.1 ;; # the engine's RestoreDateTime is the second of the call, not that of the backup
restore-table-to-point-in-time) [[ "$*" = *"--restore-date-time $MOMENT "* ]] || { echo "another moment: $*" >&2; exit 1; } ;; # the engine ignores it
esac
set -- "${@/%SYSTEM/USER}" # the engine makes no backup of a deleted table
printf '%s\\0' "$@" >"$SCRATCH/in"
exec 3<>"/dev/tcp/127.0.0.1/$AWS_CLI"
echo "$SCRATCH" >&3
read -r code <&3
if [ $code != 0 ] && ! grep -qE '^(usage|Error parsing)' "$SCRATCH/err" && lacks=$(grep -- "^$1 $2 " "$SCRATCH/lacks"); then echo "${lacks#"$1 $2 "}"; exit 0; fi
cat "$SCRATCH/err" >&2
cat "$SCRATCH/out"
exit $code
"""

# Nobody is there to be asked.
ADMIN = """#!/bin/bash
! "$REAL_ADMIN" "$@" --help | grep -q -e --yes || set -- "$@" --yes
exec "$REAL_ADMIN" "$@"
"""

# Both refuse what is not the rehearsal's.
SAM = """#!/bin/bash
[[ "$* " = *"--config-env $ENVIRONMENT "* || "$* " = *"--stack-name $SIGNALBOX_STACK "* ]] || { echo "sam $*" >&2; exit 1; }
"""
GH = """#!/bin/bash
[ "$*" != "repo view --json nameWithOwner --jq .nameWithOwner" ] || { echo "$REPOSITORY"; exit; }
[[ "$*" =~ repos/$REPOSITORY.*(/environments/$ENVIRONMENT|--jq)|--repo\\ $REPOSITORY\\ --env\\ $ENVIRONMENT ]] || { echo "gh $*" >&2; exit 1; }
[ "$1" != variable ] || echo "$7 $3 $9" >>"$VARIABLES"
echo 1001 2002 # the numbers of owner and repository
"""


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


def sections(page: str) -> dict[str, list[str]]:
    """The blocks of each section, by its heading."""
    return {
        part.partition("\n")[0]: [re.sub(rf"(?m)^{indent}", "", block) for indent, block in re.findall(r"(?ms)^( *)```sh\n(.*?)^ *```$", part)]
        for part in re.split(r"(?m)^## ", PAGES[page])[1:]
    }


def follow(page: str, headings: list[str], stack: str, values: dict[str, str], edits: dict[str, str] = {}) -> str:
    """Runs sections with these values of variables. Returns what went wrong, or ""."""
    blocks = [*sections("deploy")["The shell"]]
    if page == "restore" and headings[0] != "A new stack on retained data":  # that has no stack yet
        blocks += sections(page)["Before you begin"]
    blocks += (block for heading in headings for block in sections(page)[heading])
    values = values | {"SIGNALBOX_STACK": stack, "AWS_REGION": os.environ["AWS_REGION"], "ENVIRONMENT": ENVIRONMENT, "REPOSITORY": REPOSITORY}
    with tempfile.TemporaryDirectory() as work:
        here = pathlib.Path(work)
        (here / "infra").symlink_to(ROOT / "infra")
        (here / "lacks").write_text("".join(f"{command} {answer}\n" for command, answer in LACKS.items()))
        (here / ".build").mkdir()  # the page puts it first in PATH
        for number, block in enumerate(blocks):
            block = re.sub(r"\b([A-Z_]+)=([^\s$(]+)", lambda found: f"{found[1]}={values.get(found[1], found[2])}", block)
            for pattern, replacement in edits.items():
                block = re.sub(pattern, replacement, block)
            if literal := re.search(r"eu-central-1|signalbox-prod|\bprod\b", block):
                return f"a literal: {literal[0]} in {block}"
            (here / f"block-{number:03}").write_text(block)
        for name, text in {"aws": AWS, "admin": ADMIN, "gh": GH, "sam": SAM, **dict.fromkeys(("make", "sleep"), "#!/bin/bash\n")}.items():
            (here / ".build" / name).write_text(text)
            (here / ".build" / name).chmod(0o755)
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "for BLOCK in block-*; do . ./$BLOCK; done"], cwd=here, text=True, capture_output=True, timeout=300, stdin=subprocess.DEVNULL,
            env=os.environ | values | {
                "PATH": f"{here}/.build:{os.environ['PATH']}", "SCRATCH": str(here), "AWS_CLI": aws_cli(), "REAL_ADMIN": str(ROOT / ".build/admin"),
                "VARIABLES": str(VARIABLES),
            },
        )
        return f"exit code {ran.returncode}: {ran.stdout[-300:]}{ran.stderr[-700:]}" if ran.returncode else ""
