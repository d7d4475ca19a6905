"""Checks of logs, metrics and alarms after the requests."""

import base64
import collections
import json
import os
import re
import subprocess
import time

from account import ROOT, WORK, Subject
from behaviour import expect, works
from checks import OWN, Differs, Failed, check, until
from declared import declared
from stack import OPERATIONS

API_KEY = re.compile(r"sbx_[A-Za-z0-9_-]{20,}")


def lines(s: Subject, group: str) -> list[str]:
    """The lines of a log group since the checks began."""
    found = s.account.pages("logs", "filter_log_events", "events", logGroupName=s.physical[group], startTime=int(s.began * 1000))
    return [event["message"] for event in found]


def forms(secret: str) -> list[str]:
    """A secret as it stands, in hexadecimal, and the part of it that base64 shows after 0, 1 or 2 other bytes."""
    text = secret.encode()
    encoded = [base64.b64encode(bytes(before) + text).decode()[4 if before else 0:-4] for before in range(3)]
    return [secret, text.hex(), *encoded, *(e.replace("+", "-").replace("/", "_") for e in encoded)]


@check("no line of any log group holds a token, a provider key or an idempotency key, as text, in base64 or in hexadecimal; "
       "each answered request has a line, and the gateway has some", "infra/openapi.yaml; .github/SECURITY.md", late=True)
def secrets_in_logs(s: Subject) -> str:
    works(s)
    groups = declared(s).of("AWS::Logs::LogGroup")
    found: dict[str, list[str]] = {}

    def complete() -> bool:
        """Whether every request is logged. CloudWatch may find lines late."""
        found.update({group: lines(s, group) for group in groups})
        logged = "".join(line for name in OPERATIONS for line in found[name + "LogGroup"])
        return bool(found["AccessLogGroup"]) and all(request in logged for request in s.answered)

    logged = until(s.patience, complete)
    secrets = {form for secret in s.secrets for form in forms(secret)}
    leaks = collections.Counter(
        group for group, all_lines in found.items() for line in all_lines
        if API_KEY.search(line) or any(secret in line for secret in secrets)
    )
    if leaks:
        raise Failed(f"secrets in lines of {dict(leaks)}")
    if not logged or not s.answered:
        raise Failed(f"not all of {len(s.answered)} answered requests have a line in {s.patience:.0f} s")
    return f"{sum(map(len, found.values()))} lines of {len(groups)} log groups, searched for {len(s.secrets)} secrets"


@check("a refused deletion counts in the metric RateLimited", 'CloudWatch Logs User Guide, "Filter and pattern syntax for metric filters"', late=True)
def metric_filters(s: Subject) -> str:
    (limited,) = (t for f in declared(s).of("AWS::Logs::MetricFilter").values() for t in f["MetricTransformations"] if t["MetricName"] == "RateLimited")

    def moved() -> bool:
        metric = {"Namespace": limited["MetricNamespace"], "MetricName": "RateLimited"}
        query = {"Id": "m", "MetricStat": {"Stat": "Sum", "Period": 60, "Metric": metric}}
        got = s.account.client("cloudwatch").get_metric_data(MetricDataQueries=[query], StartTime=s.began - 60, EndTime=time.time() + 60)
        return any(value > 0 for r in got["MetricDataResults"] for value in r["Values"])

    if not until(s.patience, moved):  # deletions of the contract suite were refused
        raise Failed(f"RateLimited counted nothing in {s.patience:.0f} s")
    return "RateLimited counted"


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


@check("p99 of a request at most 2 s, of a cold start at most 1 s", "the threshold of the Latency alarm", late=True)
def latency(s: Subject) -> str:
    seen, slow = [], False
    for name in OPERATIONS:
        events = [json.loads(line) for line in lines(s, name + "LogGroup") if line.startswith("{")]
        requests = [e["duration_ms"] for e in events if e.get("message") == "request"]
        starts = [t for e in events if (t := e.get("record", {}).get("metrics", {}).get("initDurationMs"))]
        if not requests:
            raise Failed(f"{name} has logged no request")
        seen.append(f"{name} p50 {percentile(requests, 0.5):.1f} ms, p99 {percentile(requests, 0.99):.1f} ms ({len(requests)})")
        if starts:  # SystemLogLevel=WARN does not log them
            seen.append(f"starts p99 {percentile(starts, 0.99):.0f} ms ({len(starts)})")
        slow = slow or percentile(requests, 0.99) > 2000 or bool(starts) and percentile(starts, 0.99) > 1000
    return expect(not slow, "; ".join(seen))


@check("the alarms' topic has a confirmed subscriber, and none but AlarmEmail", "Amazon SNS API Reference, ListSubscriptionsByTopic")
def alarm_recipients(s: Subject) -> str:
    found = s.account.pages("sns", "list_subscriptions_by_topic", "Subscriptions", TopicArn=s.outputs["AlarmTopicArn"])
    confirmed = [f for f in found if f["SubscriptionArn"].startswith("arn:")]
    seen = f"{len(confirmed)} of {len(found)} subscriptions are confirmed"
    if not confirmed:
        raise (Failed if s.parameters["AlarmEmail"] else Differs)(f"{seen}: alarms reach nobody")
    if others := [f["Endpoint"] for f in found if f["Endpoint"] != s.parameters["AlarmEmail"]]:
        raise Differs(f"{seen}; they reach {', '.join(others)}, which AlarmEmail does not name")
    return seen


@check("an alarm's message arrives at a subscriber of the encrypted topic", 'Amazon SNS Developer Guide, "Key management": the key\'s policy admits CloudWatch', OWN, late=True)
def alarm_topic(s: Subject) -> str:
    sqs, topic, alarm = s.account.client("sqs"), s.outputs["AlarmTopicArn"], s.physical["KeyChangeAlarm"]
    url = sqs.create_queue(QueueName=f"{s.name}-prove", tags=s.deployment.tags)["QueueUrl"]
    arn = f"arn:{s.account.partition}:sqs:{s.account.region}:{s.account.id}:{s.name}-prove"
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps({"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }]})})
    s.account.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    s.account.client("cloudwatch").set_alarm_state(AlarmName=alarm, StateValue="ALARM", StateReason="make prove checks the notification")

    def arrived() -> bool:
        messages = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1, MaxNumberOfMessages=10).get("Messages", [])
        return any(alarm in m["Body"] for m in messages)

    if not until(s.patience, arrived):
        raise Failed(f"no message of {alarm} in {s.patience:.0f} s")
    (now,) = s.account.client("cloudwatch").describe_alarms(AlarmNames=[alarm])["MetricAlarms"]
    if now["StateValue"] != "ALARM":
        raise Failed(f"{alarm} was set to ALARM and is {now['StateValue']}")
    return f"the message of {alarm} arrived"


# These tests of the contract suite send requests that a gateway may refuse by itself:
# slashes in an id, bytes that are not UTF-8, bodies over 10 MB. The
# function then does nothing, so the verdict is DIFFERS.
GATEWAY_DECIDES = [
    *(rf"TestIDs/\w+_{name}" for name in ("far_too_long", "escaped_slash", "escaped_path", "escaped_dots", "escaped_backslash", "escaped_NUL",
                                          "escaped_line_feed", "not_UTF-8")),
    *(rf"TestWorkspaceParameter/.*%{escaped}.*" for escaped in ("ff", "fe", "zz", "00")), r"TestUnknownRoutes/.*//.*", r"TestUnknownRoutes/.*/",
    *(f"TestHeaders/Authorization_{name}" for name in ("two", "two,_one_empty", "tab_for_space", "not_ASCII")), r"TestHeaders/Content-.*",
    "TestStrictJSON/not_UTF-8", "TestStrictJSON/surrogate_in_UTF-8", r"TestEveryStatus/\w+_Bad_Request",
]


def results(printed: str) -> dict[str, list[str]]:
    """The tests in the output of `go test -json` by result, without parents of subtests."""
    last = {}
    for line in printed.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("Test") and event["Action"] in ("pass", "fail", "skip"):
            last[event["Test"]] = event["Action"]
    tests = collections.defaultdict(list)
    for name, result in sorted(last.items()):
        below = [r for n, r in last.items() if n.startswith(name + "/")]
        if not below or result == "fail" and "fail" not in below:
            tests[result].append(name)
    return tests


@check("every test of infra/test/contract passes", "infra/openapi.yaml; an answer by the gateway itself to a malformed request DIFFERS")
def contract(s: Subject) -> str:
    described = WORK / f"{s.name}-stack.json"
    described.write_text(json.dumps({"region": s.account.region, "outputs": s.outputs, "parameters": s.parameters}))
    done = subprocess.run(
        ["go", "test", "-count=1", "-json", "-timeout", "30m", "."], cwd=ROOT / "infra" / "test" / "contract", capture_output=True, text=True, check=False,
        env=os.environ | {
            "SIGNALBOX_BASE_URL": s.url.geturl(), "SIGNALBOX_STACK": str(described),
            "SIGNALBOX_MADE": str(s.noted), "AWS_REGION": s.account.region,
        },
    )
    (WORK / f"{s.name}-contract.json").write_text(done.stdout)
    tests = results(done.stdout)
    seen = f"{len(tests['pass'])} tests passed; skipped: {', '.join(tests['skip']) or 'none'}"
    if not tests["pass"] or done.returncode and not tests["fail"]:
        raise Failed(f"the suite did not run: {done.stderr[-500:]}")
    if not all(re.fullmatch("|".join(GATEWAY_DECIDES), name) for name in tests["fail"]):
        raise Failed(f"{seen}; failed: {', '.join(tests['fail'])}")
    if tests["fail"]:
        raise Differs(f"{seen}; the gateway refused by itself: {', '.join(tests['fail'])}")
    return seen
