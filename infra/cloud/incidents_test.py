"""Every alarm fires at its incidents and at no other log line.

infra/test/contract/log-lines.json has the functions' lines, which infra/test/contract records. Lambda's, the
gateway's and EventBridge's lines have the form that AWS documents. No library evaluates
patterns with JSON properties correctly. This file evaluates the part of the grammar that
the template uses; any other pattern is an error.
"""

import collections
import fnmatch
import json
import operator
import re
import unittest

from stack import SOURCE, Stack
from template_test import of, told


FUNCTIONS = json.loads((SOURCE.parent / "infra/test/contract/log-lines.json").read_text())


def platform(status: str) -> dict:
    return {"time": "2026-11-22T01:30:21Z", "type": "platform.report", "record": {"status": status, "metrics": {"durationMs": 15.1}}}


# The functions without the word "Function".
OPERATIONS = [name.removesuffix("Function") for name in Stack().of_type("AWS::Lambda::Function")]


def lines_of(operation: str) -> dict:
    return {name: line for name, line in FUNCTIONS.items() if line["operation"] == operation[0].lower() + operation[1:]}


def server_errors(operation: str) -> set[str]:
    return {name for name, line in lines_of(operation).items() if line["status"] >= 500}


def stored_faults(operation: str) -> set[str]:
    """The lines with our own text about a stored item as their error. An error of AWS has a code."""
    return {name for name, line in lines_of(operation).items() if "text" in line.get("error", {})}


LINES = {
    f"{operation}Function": lines_of(operation)
    | {"success": platform("success"), "crash": platform("error"), "time-out": platform("timeout")}
    | {"audit": {"message": "audit", "level": "INFO", "status": 500, "operation": "x"},
       "cold start": {"message": "cold start", "level": "ERROR", "error": "missing from the environment: ACCESS_TABLE"}}
    for operation in OPERATIONS
} | {
    "Access": {"200": {"status": "200", "responseType": "-"}, "429": {"status": "429", "responseType": "-"},
               "500": {"status": "500", "responseType": "-"}, "504": {"status": "500", "responseType": "INTEGRATION_TIMEOUT"},
               "throttled": {"status": "429", "responseType": "THROTTLED"}},
    "KeyChanges": {"key change": {"source": "aws.kms", "detail-type": "AWS API Call via CloudTrail", "detail": {"eventName": "DisableKey"}},
                   "other": {"source": "aws.s3", "detail-type": "AWS API Call via CloudTrail", "detail": {"eventName": "PutObject"}}},
}

COMPARE = {"=": fnmatch.fnmatchcase, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


def matches(pattern: str, line: dict) -> bool:
    """Whether a line matches a pattern { term && term … }."""
    inner = re.fullmatch(r"\{ (.*) \}", pattern)[1]
    for term in inner.split(" && "):
        if term == "($.stored IS TRUE)":
            if line.get("stored") is not True:
                return False
            continue
        path, compare, text, number = re.fullmatch(r'\(?\$\.([\w.]+) (=|[<>]=?) (?:"([^"]*)"|(\d+))\)?', term).groups()
        value = line
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if number is not None:
            if type(value) not in (int, float) or not (value == int(number) if compare == "=" else COMPARE[compare](value, int(number))):
                return False
        elif not isinstance(value, str) or not COMPARE[compare](value, text):
            return False
    return True


# Events in one period, with the lowest count at which an alarm fires: an AWS metric and
# its value, or the name of a log line and the number of lines.
INCIDENTS = {
    **{f"{operation}RollbackAlarm": [{line: 1} for line in [*server_errors(operation), f"Errors of {operation}Function"]] for operation in OPERATIONS},
    "ServerErrorsAlarm": [{"5XXError of signalbox": errors, "Count of signalbox": 100 * errors} for errors in (5, 3000)],
    "LatencyAlarm": [{"Latency of signalbox": 2000}],
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
# On an ordinary day, with clients' mistakes, no alarm fires.
QUIET = {name: 100 for name, line in FUNCTIONS.items() if "error" not in line} | {f"{metric} of signalbox": n for metric, n in {"Count": 300_000, "5XXError": 4, "Latency": 1999}.items()}
# The minutes of an incident after which an alarm fires.
MINUTES = collections.defaultdict(lambda: 5, {"LatencyAlarm": 15, "ThrottledAlarm": 15, "TableThrottlesAlarm": 10}) | {
    alarm: 1 for alarm in [*(f"{operation}RollbackAlarm" for operation in OPERATIONS), "SealingFailuresAlarm", "KeyChangeAlarm"]}


class Incidents(unittest.TestCase):
    def setUp(self):
        self.stack = Stack(ReservedConcurrency="100")
        self.filters = {name: self.stack.properties(name) for name in self.stack.of_type("AWS::Logs::MetricFilter")}

    def lines(self, name: str) -> dict:
        group = self.filters[name]["LogGroupName"].removeprefix("signalbox-").removesuffix("LogGroup")
        return LINES.get(group) or LINES[group + "Function"]

    def metrics(self, incident: dict) -> collections.Counter:
        """The sums of all metrics, by name and dimensions."""
        sums = collections.Counter()
        for what, count in incident.items():
            metric, _, of = what.partition(" of ")
            sums[metric, of] += count  # a metric of AWS; a line's name is a metric that no alarm watches
            for name, properties in self.filters.items():
                line = self.lines(name).get(what)
                if line and matches(properties["FilterPattern"], line):
                    (made,) = properties["MetricTransformations"]
                    values = [str(line[d["Value"].removeprefix("$.")]) for d in made.get("Dimensions", [])]
                    sums[made["MetricName"], values[0] if values else ""] += count * int(made["MetricValue"])
        return sums

    def goes_off(self, alarm: str, incident: dict) -> bool:
        properties, sums = self.stack.properties(alarm), self.metrics(incident)

        def value(metric: dict) -> int:
            first = (metric.get("Dimensions") or [{"Value": ""}])[0]["Value"]
            return sums[metric["MetricName"], first.removeprefix("signalbox-")]

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
            self.assertFalse(self.goes_off(alarm, QUIET), alarm)
            for incident in incidents:
                self.assertTrue(self.goes_off(alarm, incident), (alarm, incident))
                least = min(incident, key=lambda what: (what.startswith("Count"), incident[what]))
                self.assertFalse(self.goes_off(alarm, incident | {least: incident[least] - 1}), (alarm, incident))

    def test_no_alarm_fires_at_another_line(self):
        for alarm, incidents in INCIDENTS.items():
            expected = {line for incident in incidents if len(incident) == 1 for line in incident}
            for line in {line for lines in LINES.values() for line in lines}:
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
        self.assertEqual(rolling_back, {f"signalbox-{operation}RollbackAlarm" for operation in OPERATIONS})
        for name in self.stack.of_type("AWS::CloudWatch::Alarm"):
            p = self.stack.properties(name)
            self.assertNotEqual(p.get("AlarmActions") == [self.stack.named("AlarmTopic")], f"signalbox-{name}" in rolling_back, name)
            if f"signalbox-{name}" in rolling_back:  # errors of the old version would stop the deployment that fixes them
                versions = [{"Version", "ExecutedVersion"} & {d["Name"] for d in q["MetricStat"]["Metric"]["Dimensions"]} for q in p["Metrics"] if "MetricStat" in q]
                self.assertTrue(all(versions), name)

    def test_each_function_writes_to_the_group_that_is_watched(self):
        for operation in OPERATIONS:
            log = self.stack.properties(f"{operation}Function").get("LoggingConfig", {}).get("LogGroup")
            self.assertEqual(log, self.stack.named(f"{operation}LogGroup"))


alarm, crash, log = of("ThrottledAlarm"), of("CrashesAlarm"), of("DeleteFileFunction")

LIES = {
    "test_each_alarm_fires_at_its_incidents_and_not_below": [alarm(lambda p: p.update(Threshold=100000)), crash(lambda p: p["Metrics"].pop())],
    "test_no_alarm_fires_at_another_line": [of("SealingFailures")(lambda p: p.update(FilterPattern='{ $.message = "request" }'))],
    "test_each_alarm_fires_in_time": [of("KeyChangeAlarm")(lambda p: p.update(EvaluationPeriods=5)), of("LatencyAlarm")(lambda p: p.update(TreatMissingData="missing"))],
    "test_each_notifies_somebody_or_rolls_back": [alarm(lambda p: p.pop("AlarmActions")), log(lambda p: p.pop("DeploymentPreference"))],
    "test_each_function_writes_to_the_group_that_is_watched": [log(lambda p: p.pop("LoggingConfig"))],
}


class Lies(unittest.TestCase):
    def test_each_test_fails_on_a_wrong_template(self):
        told(self, Incidents, LIES, {"test_each_operation_has_lines_that_the_alarms_count"})  # which reads no template
