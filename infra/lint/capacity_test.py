"""The tables' ceilings.

A ceiling bounds the cost of a mistake. If it were lower than the throttle, admitted
requests would fail. For each environment of samconfig.toml
the largest requests at the sustained rate, and smaller ones all at once at
rate and burst, must fit. cost.py has their units.
"""

import pathlib
import tomllib
import unittest

import cost
from stack import Stack
from translate import SOURCE, source

def environments() -> dict[str, dict[str, str]]:
    """The parameters of each environment."""
    config = tomllib.loads(pathlib.Path(SOURCE.parent, "samconfig.toml").read_text())
    return {
        name: dict(
            override.split("=", 1)
            for override in commands["global"]["parameters"]["parameter_overrides"]
        )
        for name, commands in config.items()
        if name != "version"
    }


class Ceilings(unittest.TestCase):
    def check(self, stack: Stack, requests: list[tuple[int, cost.Units]]):
        for table, properties in ((name, stack.properties(name)) for name in stack.of_type("AWS::DynamoDB::Table")):
            for which, ceiling in enumerate(("MaxReadRequestUnits", "MaxWriteRequestUnits")):
                need = sum(count * units.get(table, (0, 0))[which] for count, units in requests)
                self.assertGreaterEqual(properties["OnDemandThroughput"][ceiling], need, table)

    def test_they_stand_above_the_throttles(self):
        # If a route has several kinds of requests, the last one in cost.py needs the most.
        kinds = {kind.route: kind for kind in cost.KINDS}
        for name, parameters in environments().items():
            with self.subTest(name):
                stack = Stack(**parameters)
                throttles = [(cost.throttle(stack, route), kind) for route, kind in kinds.items()]
                self.check(stack, [(each, kind.largest or kind.units) for each, kind in throttles])
                self.check(stack, [(2 * each, kind.many or kind.units) for each, kind in throttles])

    def test_each_route_has_a_cost(self):
        events = (f["Properties"]["Events"] for f in source()["Resources"].values() if f["Type"] == "AWS::Serverless::Function")
        routes = {f"{e['Properties']['Method']} {e['Properties']['Path']}" for each in events for e in each.values()}
        self.assertEqual({kind.route for kind in cost.KINDS}, routes, "KINDS in infra/lint/cost.py and the template have other routes")


if __name__ == "__main__":
    unittest.main()
