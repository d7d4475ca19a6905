"""Each function of functions/ is in every list of all functions."""

import json
import re
import tomllib
import unittest

from stack import SOURCE, Stack, source


class Functions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack()
        cls.functions = set(cls.stack.of_type("AWS::Lambda::Function"))

    def test_each_folder_is_a_function_of_the_template(self):
        folders = {path.parent.name for path in SOURCE.parent.glob("functions/*/main.go")}
        self.assertEqual(self.functions, {"".join(map(str.title, name.split("-"))) + "Function" for name in folders})

    def test_each_writes_to_the_log_group_that_the_alarms_watch(self):
        for function in self.functions:
            log = self.stack.properties(function).get("LoggingConfig", {}).get("LogGroup")
            self.assertEqual(log, self.stack.named(function.removesuffix("Function") + "LogGroup"), function)

    def test_a_changed_setting_publishes_a_version(self):
        """Without one the alias keeps the old setting, such as an environment variable."""
        for function in self.functions:
            self.assertIs(source()["Resources"][function]["Properties"].get("AutoPublishAliasAllProperties"), True, function)

    def test_a_changed_build_syncs_no_function(self):
        config = tomllib.loads((SOURCE.parent / "samconfig.toml").read_text())
        excluded = [line.partition("=")[0] for line in config["default"]["sync"]["parameters"]["watch_exclude"]]
        self.assertEqual(sorted(excluded), sorted(self.functions), "watch_exclude in samconfig.toml")

    def test_make_builds_each(self):
        built = re.search(r"(?m)^FUNCTIONS := (.*)", (SOURCE.parent / "Makefile").read_text())
        self.assertEqual(set(built[1].split()), self.functions, "FUNCTIONS in the Makefile")

    def test_an_alarm_widget_or_query_of_several_functions_has_all(self):
        """Each query, and each alarm or widget of two functions, names all functions equally often."""
        queries = self.stack.of_type("AWS::Logs::QueryDefinition")
        watching = {name: self.stack.properties(name) for name in (*queries, *self.stack.of_type("AWS::CloudWatch::Alarm"))}
        for widget in json.loads(self.stack.properties("Dashboard")["DashboardBody"])["widgets"]:
            watching[f"the widget {widget['properties']['title']!r}"] = widget
        for name, properties in watching.items():
            words = re.findall(r"\b(\w+?)(?:Function|LogGroup)\b", json.dumps(properties))
            times = {function: words.count(function.removesuffix("Function")) for function in self.functions}
            if name in queries or sum(map(bool, times.values())) > 1:
                left_out = [function for function, count in times.items() if count < (max(times.values()) or 1)]
                self.assertFalse(left_out, f"{name} in template.yaml leaves out these functions")
