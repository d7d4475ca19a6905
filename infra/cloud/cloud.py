"""Compares a deployed stack with this repository, and makes the checks that need AWS.

verify   checks a stack in use, with a test account that it removes again
run      deploys a new stack, checks it, changes it, checks it again, and removes everything
clean    finishes an interrupted removal

It changes no stack without its tag, and deletes only resources with that tag.
"""

import argparse
import signal
import sys
import time

from account import WORK, Account, Subject
import behaviour, declared, observed  # noqa: E401, F401 - they declare the checks
from checks import CHANGED, CHECKS, FAIL, LIVE, OWN, Report, make, markdown
from life import Cleaner, Deployment


def report(title: str, name: str, reports: list[Report]) -> int:
    text = markdown(title, reports)
    (WORK / f"{name}.md").write_text(text)
    print(text)
    failed = [r.check.name for r in reports if r.verdict == FAIL]
    print("cloud: failed:", ", ".join(failed) or "none", file=sys.stderr)
    return int(bool(failed))


def checked(subject: Subject, *stages: str) -> list[Report]:
    """Makes the checks of these stages with a test account, and removes the account."""
    subject.remove_tenants()  # those that a killed run left
    try:
        subject.make_tenant()
        return make([c for c in CHECKS if c.stage in stages], subject)
    finally:
        subject.remove_tenants()


def verify(o: argparse.Namespace, account: Account) -> int:
    subject = Subject(account, o.stack)
    title = f"Stack {o.stack} in {account.region} on {time.strftime('%Y-%m-%d')}."
    return report(title, o.stack, checked(subject, LIVE))


def run(o: argparse.Namespace, account: Account) -> int:
    deployment = Deployment(account, o.stack, dict(tag.split("=", 1) for tag in o.tags.split()), o.boundary)
    deployment.agree(o.yes)
    reports: list[Report] = []
    try:
        deployment.prepare()
        for stages in ((LIVE, OWN), (CHANGED,)):
            subject = deployment.deploy(stages[-1])
            reports += checked(subject, *stages)
    finally:
        Cleaner(account, o.stack).clean()
    return report(f"Asked of AWS on {time.strftime('%Y-%m-%d')} in {account.region}, {deployment.architectures} in turn.", o.stack, reports)


def main(arguments: list[str], connect=Account) -> int:
    parser = argparse.ArgumentParser(prog="cloud", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("verify", "run", "clean"))
    parser.add_argument("--stack", default="", help="name of the stack")
    parser.add_argument("--tags", default="", help="more tags of what is made: name=value …")
    parser.add_argument("--boundary", default="", help="ARN of the permissions boundary of the stack's roles")
    parser.add_argument("--yes", action="store_true", help="do not ask before starting")
    o = parser.parse_args(arguments)
    if not o.stack:
        sys.exit("cloud: no stack is named: add STACK=NAME")
    account = connect()
    if o.command == "clean":
        Cleaner(account, o.stack).clean()
        return 0
    return {"verify": verify, "run": run}[o.command](o, account)


def interrupted(*_) -> None:
    """Ends the checks; the stack is then removed. A second signal does not stop the removal."""
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(s, interrupted)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("cloud: interrupted")
