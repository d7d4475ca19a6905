"""Checks of a deployed stack: how one is declared, made and reported."""

import dataclasses
import re
import sys
import time
from collections.abc import Callable

PASS = "PASS"
DIFFERS = "DIFFERS"  # another response, which the product handles or the operator chose
FAIL = "FAIL"
NOT_CHECKED = "NOT CHECKED"  # the text says why

# The deployment that a check needs.
LIVE = "live"  # any stack, also one in use
OWN = "own"  # the first deployment of `make prove`
CHANGED = "changed"  # its second: versioned bucket, firewall, low throttle, other architecture


class Failed(Exception):
    """Ends a check with a verdict other than PASS."""

    verdict = FAIL


class Differs(Failed):
    verdict = DIFFERS


class NotChecked(Failed):
    verdict = NOT_CHECKED


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    expects: str
    source: str
    stage: str
    late: bool  # runs last, because it reads the logs and metrics of the other checks
    ask: Callable


CHECKS: list[Check] = []


def check(expects: str, source: str, stage: str = LIVE, late: bool = False):
    """Declares a check. The function returns its finding as a text, or raises Failed."""

    def declare(ask: Callable) -> Callable:
        CHECKS.append(Check(ask.__name__.replace("_", "-"), expects, source, stage, late, ask))
        return ask

    return declare


@dataclasses.dataclass(frozen=True)
class Report:
    check: Check
    verdict: str
    seen: str


def make(checks: list[Check], subject) -> list[Report]:
    """Makes the checks one after another. An error is a FAIL: an unfinished check proves nothing."""
    reports = []
    for c in sorted(checks, key=lambda c: c.late):
        try:
            verdict, seen = PASS, c.ask(subject)
        except Failed as result:
            verdict, seen = result.verdict, str(result)
        except Exception as error:  # any error is reported
            verdict, seen = FAIL, f"could not be checked: {type(error).__name__}: {error}"
        seen = subject.redact(seen)[:1000]  # cut after redact, which does not recognise a cut secret
        print(time.strftime("%H:%M:%S"), f"{verdict:11} {c.name}: {seen}", file=sys.stderr, flush=True)
        reports.append(Report(c, verdict, seen))
    return reports


_cell = lambda text: re.sub(r"\s+", " ", text).replace("|", "\\|").strip()  # noqa: E731


def markdown(title: str, reports: list[Report]) -> str:
    counts = ", ".join(f"{sum(r.verdict == v for r in reports)} {v}" for v in (PASS, DIFFERS, FAIL, NOT_CHECKED))
    rows = [f"| `{r.check.name}` | {r.verdict} | {_cell(f'{r.check.expects} ({r.check.source})')} | {_cell(r.seen)} |" for r in reports]
    return "\n".join([title, "", counts + ".", "", "| check | result | expected (source) | seen |", "|---|---|---|---|", *rows, ""])


def until(seconds: float, ask: Callable):
    """Calls ask until its result is true or the time is over. Returns the last result."""
    end, pause = time.monotonic() + seconds, 0.2
    while not (result := ask()) and time.monotonic() < end:
        time.sleep(min(pause, max(0, end - time.monotonic())))
        pause = min(2 * pause, 10)
    return result
