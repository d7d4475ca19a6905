"""Alarms that reach an operator and name the next step."""

import json
import re
import unittest

from stack import SOURCE, Stack


class Alarms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack()
        cls.alarms = cls.stack.of_type("AWS::CloudWatch::Alarm")
        cls.rolling_back = {
            alarm["Name"]["Ref"]
            for group in cls.stack.of_type("AWS::CodeDeploy::DeploymentGroup").values()
            for alarm in group["Properties"].get("AlarmConfiguration", {}).get("Alarms", [])
        }

    def test_each_notifies_somebody_or_rolls_back(self):
        for name in self.alarms:
            tells = "AlarmActions" in self.stack.properties(name)
            self.assertNotEqual(tells, name in self.rolling_back, f"{name} needs either AlarmActions or a function that names it in DeploymentPreference")

    def test_every_function_rolls_back(self):
        needed = {name.removesuffix("Function") + "RollbackAlarm" for name in self.stack.of_type("AWS::Lambda::Function")}
        self.assertEqual(self.rolling_back, needed, "DeploymentPreference of the functions in template.yaml names other alarms")
        # Otherwise errors of the old version would stop the deployment that fixes them.
        for name, metric in self.watched():
            if name in self.rolling_back:
                self.assertIn({"Version", "ExecutedVersion"} & {d["Name"] for d in metric["Dimensions"]}, [{"Version"}, {"ExecutedVersion"}], name)

    def test_a_filter_makes_each_custom_metric_and_an_alarm_watches_it(self):
        made = {
            (transformation["MetricName"], frozenset(dimension["Key"] for dimension in transformation.get("Dimensions", [])))
            for name in self.stack.of_type("AWS::Logs::MetricFilter")
            for transformation in self.stack.properties(name)["MetricTransformations"]
        }
        watched = {
            (metric["MetricName"], frozenset(dimension["Name"] for dimension in metric.get("Dimensions", [])))
            for _, metric in self.watched() if metric["Namespace"] == "Signalbox/signalbox"
        }
        self.assertEqual(watched, made)

    def watched(self):
        for name in self.alarms:
            properties = self.stack.properties(name)
            if "Metrics" not in properties:
                yield name, properties
            for query in properties.get("Metrics", []):
                if "MetricStat" in query:
                    yield name, query["MetricStat"]["Metric"]

    def test_the_price_in_cost_md_counts_their_metrics(self):
        watched = [metric for _, metric in self.watched()]
        own = {json.dumps(metric) for metric in watched if metric["Namespace"] == "Signalbox/signalbox"}
        cost = (SOURCE.parent / "infra/operations/cost.md").read_text()
        for price in (f"for each metric they watch: {len(watched)} | {0.10 * len(watched):.2f} |", f"by the hour in which it has data: {0.30 * len(own):.2f} for {len(own)}."):
            self.assertTrue(price in cost, f"infra/operations/cost.md needs: {price}")

    def test_each_description_names_the_next_step_and_existing_queries(self):
        queries = {
            self.stack.properties(name)["Name"].rpartition("/")[2]
            for name in self.stack.of_type("AWS::Logs::QueryDefinition")
        }
        for name in self.alarms:
            description = self.stack.properties(name)["AlarmDescription"]
            self.assertGreater(len(description.split(". ")), 1, name)
            for query in re.findall(r'(?:Run|by) "([^"]+)"', description):
                self.assertIn(query, queries, name)

    def test_the_topic_accepts_our_alarms_and_refuses_plain_http(self):
        policy, key = self.stack.properties("AlarmTopicPolicy")["PolicyDocument"], self.stack.properties("StorageKey")["KeyPolicy"]
        allow, deny = policy["Statement"]
        for statement in (allow, *[s for s in key["Statement"] if s["Sid"] == "Alarms"]):
            self.assertEqual((statement["Effect"], statement["Principal"]), ("Allow", {"Service": "cloudwatch.amazonaws.com"}))
            self.assertEqual(set(statement["Condition"]), {"StringEquals", "ArnLike"})
        self.assertEqual((allow["Action"], deny["Effect"]), ("sns:Publish", "Deny"))
        self.assertEqual((deny["Principal"], deny["Action"], deny["Condition"]), ("*", "sns:Publish", {"Bool": {"aws:SecureTransport": "false"}}))

    def test_calls_that_can_open_or_stop_a_key_are_reported(self):
        (rule,) = self.stack.of_type("AWS::Events::Rule").values()
        key = json.dumps(Stack(MultiRegionSealingKey="true").properties("SealingKey"))
        actions = set(re.findall(r'"kms:((?:Disable|Put|Replicate|Schedule)\w+)"', key))
        self.assertEqual(set(rule["Properties"]["EventPattern"]["detail"]["eventName"]), actions | {"DisableKeyRotation"})
        other = "arn:aws:kms:eu-central-1:111122223333:key/0a1b"
        pattern = Stack(NextSealingKeyArn=other).properties("KeyChangesRule")["EventPattern"]
        ours = [self.stack.named(name) for name in ("SealingKey", "SealingKey.Arn", "StorageKey", "StorageKey.Arn")]
        self.assertEqual(pattern["detail"]["requestParameters"]["keyId"], [*ours, other, "0a1b"])
        (target,) = self.stack.properties("KeyChangesRule")["Targets"]
        self.assertEqual(target["Arn"] + ":*", self.stack.named("KeyChangesLogGroup.Arn"))
        create, put = json.loads(self.stack.properties("KeyChangesLogPolicy")["PolicyDocument"])["Statement"]
        for statement, action in ((create, "logs:CreateLogStream"), (put, "logs:PutLogEvents")):
            said = statement["Effect"], statement["Action"], statement["Resource"], statement["Principal"]["Service"][0]
            self.assertEqual(said, ("Allow", action, self.stack.named("KeyChangesLogGroup.Arn"), "events.amazonaws.com"))
        self.assertEqual(put["Condition"], {"ArnEquals": {"aws:SourceArn": self.stack.named("KeyChangesRule.Arn")}})
