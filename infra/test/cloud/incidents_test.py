"""Every alarm fires at its incidents and at no other log line. The saved queries show what exists.

infra/test/contract/log-lines.json has the functions' lines, which infra/test/contract records. The
gateway's lines follow the template's format; Lambda's and EventBridge's lines, and the names and dimensions of
AWS's metrics, are those that AWS documents. No library evaluates patterns with JSON properties correctly. This
file evaluates the part of the grammar that the template uses; any other pattern is an error.
"""

import collections
import functools
import json
import operator
import re
import unittest

from account import ROOT
from runbook import PAGES
from stack import OPERATIONS, SOURCE, Stack
from template_test import ALL


FUNCTIONS = json.loads((SOURCE.parent / "infra/test/contract/log-lines.json").read_text())


def platform(status: str) -> dict:
    return {"time": "2026-11-22T01:30:21Z", "type": "platform.report", "record": {"status": status, "metrics": {"durationMs": 15.1}}}


def lines_of(operation: str) -> dict:
    return {name: line for name, line in FUNCTIONS.items() if line["operation"] == operation[0].lower() + operation[1:]}


def server_errors(operation: str) -> set[str]:
    return {name for name, line in lines_of(operation).items() if line["status"] >= 500}


def stored_faults(operation: str) -> set[str]:
    """The lines with our own text about a stored item as their error. An error of AWS has a code."""
    return {name for name, line in lines_of(operation).items() if "text" in line.get("error", {})}


# Lines of a function that are no request's.
OTHERS = {
    "success": platform("success"), "crash": platform("error"), "time-out": platform("timeout"),
    "audit": {"message": "audit", "level": "INFO", "status": 500, "operation": "x"},
    "cold start": {"message": "cold start", "level": "ERROR", "error": "missing from the environment: ACCESS_TABLE"},
}
# The gateway's variables for a request.
REQUESTS = {
    "200": {"status": "200"}, "429": {"status": "429"}, "500": {"status": "500"},
    "504": {"status": "500", "error.responseType": "INTEGRATION_TIMEOUT"}, "throttled": {"status": "429", "error.responseType": "THROTTLED"},
}
EVENTS = {
    "key change": {"source": "aws.kms", "detail-type": "AWS API Call via CloudTrail", "detail": {"eventName": "DisableKey"}},
    "other": {"source": "aws.s3", "detail-type": "AWS API Call via CloudTrail", "detail": {"eventName": "PutObject"}},
}
NAMES = {*FUNCTIONS, *OTHERS, *REQUESTS, *EVENTS}

FIELDS = {name for line in FUNCTIONS.values() for name in line} | {
    before + name for folder, before in (("functions", ""), ("shared/api", ""), ("shared/calls", "error."))
    for path in (ROOT / folder).rglob("*.go") for name in re.findall(r'slog\.\w+\("(\w+)"', path.read_text())}


def matches(pattern: str, line: dict) -> bool:
    """Whether a line matches a pattern { term && term … }."""
    for term in re.fullmatch(r"\{ (.*) \}", pattern)[1].split(" && "):
        path, compare, text, number = re.fullmatch(r'\(?\$\.([\w.]+) (?:(=|>=) (?:"([\w.]+)"|(\d+))|IS TRUE)\)?', term).groups()
        value = functools.reduce(lambda found, name: found.get(name) if isinstance(found, dict) else None, path.split("."), line)
        wanted = text or (int(number) if number else True)
        if type(value) is not type(wanted) or not (value >= wanted if compare == ">=" else value == wanted):
            return False
    return True


# Events in one period, with the lowest count at which an alarm fires: an AWS metric and
# its value, or the name of a log line and the number of lines.
INCIDENTS = {
    **{f"{operation}RollbackAlarm": [{line: 1} for line in [*server_errors(operation), f"Errors of {operation}Function"]] for operation in OPERATIONS},
    "ServerErrorsAlarm": [{"5XXError of Api": errors, "Count of Api": requests} for errors, requests in ((2, 2), (2, 20), (4, 40), (5, 500), (3000, 300_000))],
    "LatencyAlarm": [{"Latency of Api": 2000}],
    "CrashesAlarm": [{f"Errors of {operation}Function": 1} for operation in OPERATIONS],
    "FunctionThrottlesAlarm": [{f"Throttles of {operation}Function": 1} for operation in OPERATIONS],
    "ConcurrencyAlarm": [{f"ConcurrentExecutions of {operation}Function": 80} for operation in OPERATIONS],
    "ThrottledAlarm": [{"deleteFile 429": 101}, {"throttled": 101}, {"deleteFile 429": 51, "throttled": 50}],
    "TableThrottlesAlarm": [{f"{verb}ThrottleEvents of {table}Table": 1} for verb in ("Read", "Write")
                            for table in ("Access", "Credentials", "SyncJobs", "Control")],
    "StoredFaultsAlarm": [{line: 1} for operation in OPERATIONS for line in stored_faults(operation)],
    "SealingFailuresAlarm": [{"createByokKey 500 KMS": 1}],
    "KeyChangeAlarm": [{"key change": 1}],
}
# The minutes of an incident after which an alarm fires.
MINUTES = collections.defaultdict(lambda: 5, {"LatencyAlarm": 15, "ThrottledAlarm": 15, "TableThrottlesAlarm": 10}) | {
    alarm: 1 for alarm in [*(f"{operation}RollbackAlarm" for operation in OPERATIONS), "SealingFailuresAlarm", "KeyChangeAlarm"]}


# The part of the query language of CloudWatch Logs that the template uses.
FIELD, TEXT = r"(?<!\w)@?[a-z]\w*(?:\.\w+)*", r'"[^"]*"'
TERM = rf"({FIELD}) (?:(?:=|like) ({TEXT})|in \[([\d, ]+)\])"
CALL = rf"(?:count|latest)\((?:\*|{FIELD})\) as \w+"
COMMANDS = {
    "fields": rf"{FIELD}(, {FIELD})*", "filter": rf"{TERM}( (and|or) {TERM})*", "limit": r"\d+",
    "sort": rf"{FIELD} (asc|desc)", "stats": rf"{CALL}(, {CALL})* by {FIELD}(, {FIELD})*",
}
WORDS = {"and", "asc", "as", "by", "count", "desc", "in", "latest", "like", "or"}


class Incidents(unittest.TestCase):
    def setUp(self):
        self.stack = Stack(**ALL)
        access = self.stack.properties("ApiStage")["AccessLogSetting"]["DestinationArn"].removesuffix(":*").rpartition(":")[2]
        self.lines = {self.stack.named("KeyChangesLogGroup"): EVENTS, access: {n: self.access(r) for n, r in REQUESTS.items()}}
        for operation in OPERATIONS:
            version = self.stack.properties(f"{operation}FunctionAliaslive")["FunctionVersion"]
            found = {name: line | {"version": version} for name, line in (lines_of(operation) | OTHERS).items()}
            self.lines[self.stack.properties(f"{operation}Function")["LoggingConfig"]["LogGroup"]] = found

    def access(self, request: dict) -> dict:
        form = self.stack.properties("ApiStage")["AccessLogSetting"]["Format"]
        return json.loads(re.sub(r"\$context\.([\w.]+)", lambda found: request.get(found[1], "-"), form))

    def published(self, metric: str, of: str) -> list[tuple[str, str, frozenset]]:
        """AWS publishes a metric under several sets of dimensions."""
        if of == "Api":
            stage = {"ApiName": self.stack.properties("Api")["Body"]["info"]["title"], "Stage": self.stack.properties("ApiStage")["StageName"]}
            return [("AWS/ApiGateway", metric, frozenset(stage.items()))]
        if of.endswith("Table"):
            return [("AWS/DynamoDB", metric, frozenset({("TableName", self.stack.named(of))}))]
        alias, function = self.stack.properties(f"{of}Aliaslive"), ("FunctionName", self.stack.named(of))
        version = {function, ("Resource", f"{function[1]}:{alias['Name']}"), ("ExecutedVersion", alias["FunctionVersion"])}
        return [("AWS/Lambda", metric, frozenset(dimensions)) for dimensions in ({function}, version)]

    def metrics(self, incident: dict) -> collections.Counter:
        """The sums of all metrics, by namespace, name and all dimensions."""
        sums = collections.Counter()
        for what, count in incident.items():
            metric, _, of = (what, "", "") if what in NAMES else what.partition(" of ")
            for key in self.published(metric, of) if of else []:
                sums[key] += count
            for properties in map(self.stack.properties, self.stack.of_type("AWS::Logs::MetricFilter")):
                line = self.lines.get(properties["LogGroupName"], {}).get(what)
                if line and matches(properties["FilterPattern"], line):
                    (made,) = properties["MetricTransformations"]
                    dimensions = frozenset((d["Key"], line[d["Value"].removeprefix("$.")]) for d in made.get("Dimensions", []))
                    sums[made["MetricNamespace"], made["MetricName"], dimensions] += count * int(made["MetricValue"])
        return sums

    def goes_off(self, alarm: str, incident: dict) -> bool:
        properties, sums = self.stack.properties(alarm), self.metrics(incident)

        def value(metric: dict) -> int:
            return sums[metric["Namespace"], metric["MetricName"], frozenset((d["Name"], d["Value"]) for d in metric.get("Dimensions", []))]

        found = value(properties) if "MetricName" in properties else None
        if "Metrics" in properties:
            values = {q["Id"]: value(q["MetricStat"]["Metric"]) for q in properties["Metrics"] if "MetricStat" in q}
            (expression,) = [q["Expression"] for q in properties["Metrics"] if "Expression" in q]
            functions = {"IF": lambda c, a, b: a if c else b, "SUM": sum, "MAX": max, "METRICS": values.values}
            found = eval(expression.replace("/ requests", "/ max(requests, 1)"), functions | {"max": max}, values)
        compare = {"GreaterThanOrEqualToThreshold": operator.ge, "GreaterThanThreshold": operator.gt}
        return compare[properties["ComparisonOperator"]](found, properties["Threshold"])

    def test_each_alarm_fires_at_its_incidents_and_not_below(self):
        self.assertEqual(set(INCIDENTS), set(self.stack.of_type("AWS::CloudWatch::Alarm")), "INCIDENTS and the template have other alarms")
        for alarm, incidents in INCIDENTS.items():
            for incident in incidents:
                self.assertTrue(self.goes_off(alarm, incident), (alarm, incident))
                least = min(incident, key=lambda what: (what.startswith("Count"), incident[what]))
                self.assertFalse(self.goes_off(alarm, incident | {least: incident[least] - 1}), (alarm, incident))

    def test_no_alarm_fires_at_another_line(self):
        for alarm, incidents in INCIDENTS.items():
            expected = {line for incident in incidents if len(incident) == 1 for line in incident}
            for line in NAMES:
                self.assertEqual(self.goes_off(alarm, {line: 101}), line in expected, (alarm, line))

    def test_each_operation_has_lines_that_the_alarms_count(self):
        for operation in OPERATIONS:
            self.assertTrue(server_errors(operation) and stored_faults(operation), f"{operation} has too few lines in infra/test/contract/log-lines.json: record them with SIGNALBOX_LINES=record")

    def test_each_alarm_fires_in_time(self):
        for alarm in INCIDENTS:
            properties = self.stack.properties(alarm)
            periods = properties.get("DatapointsToAlarm", properties["EvaluationPeriods"])
            for metric in [q["MetricStat"] for q in properties.get("Metrics", []) if "MetricStat" in q] or [properties]:
                self.assertEqual(metric["Period"] * periods, 60 * MINUTES[alarm], alarm)
                statistic = metric.get("Stat") or metric.get("Statistic") or metric["ExtendedStatistic"]
                self.assertEqual(statistic, {"LatencyAlarm": "p99", "ConcurrencyAlarm": "Maximum"}.get(alarm, "Sum"), alarm)
            self.assertEqual(properties["TreatMissingData"], "notBreaching", alarm)

    def test_each_notifies_somebody_or_rolls_back(self):
        rolling_back = {
            alarm["Name"] for group in self.stack.of_type("AWS::CodeDeploy::DeploymentGroup")
            for alarm in self.stack.properties(group).get("AlarmConfiguration", {}).get("Alarms", [])
        }
        self.assertEqual(rolling_back, {self.stack.named(f"{operation}RollbackAlarm") for operation in OPERATIONS})
        for name in self.stack.of_type("AWS::CloudWatch::Alarm"):
            p = self.stack.properties(name)
            for query in p.get("Metrics", []):
                self.assertLessEqual(set(query) | set(query.get("MetricStat", {})), {"Expression", "Id", "Label", "Metric", "MetricStat", "Period", "ReturnData", "Stat"}, name)
            self.assertNotEqual(p.get("AlarmActions") == [self.stack.named("AlarmTopic")], self.stack.named(name) in rolling_back, name)
            if self.stack.named(name) in rolling_back:  # errors of the old version would stop the deployment that fixes them
                versions = [{"Version", "ExecutedVersion"} & {d["Name"] for d in q["MetricStat"]["Metric"]["Dimensions"]} for q in p["Metrics"] if "MetricStat" in q]
                self.assertTrue(all(versions), name)
            else:
                self.assertRegex(PAGES["alarms"], rf"(?m)^## {p['AlarmDescription'].rpartition('infra/operations/alarms.md, ')[2]}$")

    def test_each_saved_query_asks_what_is_logged(self):
        """Its fields and values are those of some line, and it asks every function. PUT … stands for a value that a person writes there."""
        functions = {self.stack.properties(f"{operation}Function")["LoggingConfig"]["LogGroup"] for operation in OPERATIONS}
        lines = [*FUNCTIONS.values(), *OTHERS.values()]
        self.assertLessEqual({"request_id", "lambda_request_id"}, FIELDS & set(self.access({})), "an id has one name in all logs")
        for name in self.stack.of_type("AWS::Logs::QueryDefinition"):
            groups, query = (self.stack.properties(name)[p] for p in ("LogGroupNames", "QueryString"))
            for command in re.split(r"\s+\| ", query.strip()):
                verb, _, rest = command.partition(" ")
                self.assertRegex(rest, rf"^({COMMANDS[verb]})$", name)
                unknown = {f for f in re.findall(FIELD, re.sub(TEXT, "", rest)) if f[0] != "@"} - FIELDS - set(re.findall(r" as (\w+)", query)) - WORDS
                self.assertFalse(unknown, f"{name}: no line has these")
            self.assertNotRegex(query, r'(credential|key) = "PUT ', f"{name}: admin lists the beginning")
            for field, text, numbers in re.findall(TERM, query):
                values = set(json.loads(f"[{numbers}]" if numbers else f"[{text}]"))
                self.assertTrue(text.startswith('"PUT ') or values <= {line.get(field) for line in lines}, f"{name}: no line has {field} with {values}")
            self.assertEqual(set(groups), functions | {self.stack.named("AccessLogGroup") for _ in re.findall("request_id =", query)}, name)
