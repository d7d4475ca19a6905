"""A changed parameter reaches the live version.

SAM makes the logical id of a function's version from the template before parameters
are resolved. So a version keeps its environment until code or template change. A
setting that must follow a parameter needs another way; these tests check that it has one.
"""

import unittest

from stack import Stack, translate


def versions(stack: Stack, function: str) -> dict:
    """The published versions of a function, by logical id."""
    return {
        name: stack.properties(name)
        for name, version in stack.of_type("AWS::Lambda::Version").items()
        if version["Properties"]["FunctionName"] == {"Ref": function}
    }


class Limits(unittest.TestCase):
    def test_defaults_and_bounds_are_the_documented_ones(self):
        parameters = translate()["Parameters"]
        self.assertEqual([parameters[name]["Default"] for name in ("DeleteRatePerMinute", "DeleteBurst", "CredentialsPerWorkspace")], [60, 20, 100])
        # The functions refuse a higher bound: every create would get 500.
        self.assertEqual(parameters["CredentialsPerWorkspace"]["MaxValue"], 100)

    def test_changed_parameters_change_variables_of_the_same_stage(self):
        stages = []
        for rate, burst, credentials in (("60", "20", "100"), ("600", "100", "7")):
            stack = Stack(DeleteRatePerMinute=rate, DeleteBurst=burst, CredentialsPerWorkspace=credentials)
            self.assertEqual(
                stack.properties("ApiStage")["Variables"],
                {"deleteRatePerMinute": rate, "deleteBurst": burst, "credentialsPerWorkspace": credentials},
            )
            stages.append({n: s["Properties"]["DeploymentId"] for n, s in stack.of_type("AWS::ApiGateway::Stage").items()})
        self.assertEqual(*stages)


class Environment(unittest.TestCase):
    """A parameter that changes a function's environment makes a new version."""

    OTHERS = {
        "CredentialsPerWorkspace": "7",
        "DeleteBurst": "100",
        "DeleteRatePerMinute": "600",
        "FilesVersioning": "Enabled",
        "NextSealingKeyArn": "arn:aws:kms:eu-central-1:111122223333:key/other",
        "StageName": "other",
    }

    def test_a_version_changes_with_its_environment(self):
        plain = Stack()
        for parameter, value in self.OTHERS.items():
            other = Stack(**{parameter: value})
            for function in plain.of_type("AWS::Lambda::Function"):
                same_environment = (
                    plain.properties(function)["Environment"]
                    == other.properties(function)["Environment"]
                )
                same_version = versions(plain, function) == versions(other, function)
                self.assertEqual(same_environment, same_version, (parameter, function))

    def test_the_next_sealing_key_reaches_the_function(self):
        """`make iam` tries the policy. The test above checks the version."""
        environment = Stack(**self.OTHERS).properties("CreateByokKeyFunction")["Environment"]
        self.assertEqual(environment["Variables"]["SEALING_KEY_ARN"], self.OTHERS["NextSealingKeyArn"])
