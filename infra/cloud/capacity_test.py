"""The tables' ceilings.

A ceiling bounds the cost of a mistake. If it were lower than the throttle, admitted
requests would fail. In each environment of samconfig.toml two loads must fit: the largest
requests at the sustained rate, and smaller ones all at once at rate and burst.
"""

import unittest

from stack import Stack, environments, source


Units = dict[str, tuple[int, int]]  # read and write units, by table


def needs() -> dict[str, dict[str, Units]]:
    """The units of a request by route: of a typical one, of which many may come at once,
    and of the largest. They are strongly consistent reads of 4 KB and writes of 1 KB, and
    double in a transaction. A key, an account or a limiter item is 1 KB."""
    found = {}
    for name, function in source()["Resources"].items():
        if function["Type"] != "AWS::Serverless::Function":
            continue
        if "Units" not in function["Metadata"]:
            raise ValueError(f"{name}: its Metadata in template.yaml has no Units")
        for event in function["Properties"]["Events"].values():
            found[f"{event['Properties']['Method']} {event['Properties']['Path']}"] = function["Metadata"]["Units"]
    return found


def throttles(stack: Stack) -> dict[str, dict]:
    """The entries of MethodSettings by route; "* *" is the entry for all other routes."""
    return {f"{s['HttpMethod']} {s['ResourcePath'][1:].replace('~1', '/')}": s for s in stack.properties("ApiStage")["MethodSettings"]}


def throttle(stack: Stack, route: str) -> int:
    """The throttle of a route, in requests a second and at one instant."""
    settings = throttles(stack)
    own = settings.get(route, settings["* *"])
    if own["ThrottlingRateLimit"] != own["ThrottlingBurstLimit"]:
        raise ValueError(f"{route}: rate and burst differ")
    return int(own["ThrottlingRateLimit"])


class Ceilings(unittest.TestCase):
    def check(self, stack: Stack, requests: dict[str, tuple[int, Units]]):
        """Checks that the tables admit this many requests of each route at once."""
        for table, properties in ((name, stack.properties(name)) for name in stack.of_type("AWS::DynamoDB::Table")):
            for which, ceiling in enumerate(("MaxReadRequestUnits", "MaxWriteRequestUnits")):
                allowed = properties["OnDemandThroughput"][ceiling]
                needed = {route: count * units.get(table, (0, 0))[which] for route, (count, units) in requests.items()}
                each = ", ".join(f"{need:,} for {route}" for route, need in needed.items() if need)
                self.assertLessEqual(sum(needed.values()), allowed, (
                    f"{table} needs {sum(needed.values()):,} units a second ({each}), but {ceiling} is {allowed:,}: "
                    "raise it in template.yaml (OnDemandThroughput), or lower ReadsPerSecond, CreatesPerSecond or DeletesPerSecond"))

    def test_the_ceilings_are_above_the_throttles(self):
        units = needs()
        for name, parameters in environments().items():
            with self.subTest(name):
                stack = Stack(**parameters)
                rates = {route: throttle(stack, route) for route in units}
                self.check(stack, {route: (rate, units[route]["Largest"]) for route, rate in rates.items()})
                self.check(stack, {route: (2 * rate, units[route]["Typical"]) for route, rate in rates.items()})

    def test_each_route_except_a_get_has_its_own_throttle(self):
        own = throttles(Stack()).keys() - {"* *"}
        self.assertEqual(own, {route for route in needs() if not route.startswith("GET ")}, (
            "MethodSettings in template.yaml need one entry for each route that is no GET; without it the route is under ReadsPerSecond"))
