"""The tables' ceilings.

A ceiling bounds the cost of a mistake. If it were lower than the throttle, admitted
requests would fail. In each environment of samconfig.toml two loads must fit: the largest
requests at the sustained rate, and smaller ones all at once at rate and burst.
"""

import dataclasses
import unittest

from stack import Stack, environments
from translate import source

Units = dict[str, tuple[int, int]]  # read and write units, by table


@dataclasses.dataclass
class Need:
    """The units of a request: strongly consistent reads of 4 KB and writes of 1 KB. They
    double in a transaction. A key, an account or a limiter item is 1 KB."""

    many: Units  # of a typical request; many of them may come at once
    largest: Units  # of the largest possible request


NEEDS = {
    "GET /api/v1/scim/sync-jobs/{id}": Need(
        many={"AccessTable": (1, 0), "SyncJobsTable": (1, 0)},
        largest={"AccessTable": (1, 0), "SyncJobsTable": (1, 0)},
    ),
    "POST /api/v1/byok": Need(
        # A credential of 4 KB with 5 allowed hashes, a record of 2 KB, a row of 1 KB.
        many={"AccessTable": (2 + 5, 1), "CredentialsTable": (0, 2 * 4), "ControlTable": (1, 2 * 2)},
        # A body of 64 KB, kept in the credential and in the idempotency record (66 KB each); 100
        # allowed hashes; a counter for each of the 113 providers in the workspace's row (5 KB).
        # A copy of a request in a full workspace updates that row twice. A claim that is refused
        # reads the row and stores no credential, only its refusal (control). The count of a full
        # workspace is not here: at most 1 MB, 250 read units, once a minute for each workspace.
        largest={"AccessTable": (2 + 100 + 2, 2 * 5), "CredentialsTable": (0, 2 * 66), "ControlTable": (17, 2 * 66)},
    ),
    "DELETE /api/v1/files/{file_id}": Need(
        many={"AccessTable": (2 + 1, 0), "ControlTable": (0, 2)},
        largest={"AccessTable": (2 + 2, 0), "ControlTable": (0, 2)},
    ),
}


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
                needs = {route: count * units.get(table, (0, 0))[which] for route, (count, units) in requests.items()}
                each = ", ".join(f"{need:,} for {route}" for route, need in needs.items() if need)
                self.assertLessEqual(sum(needs.values()), allowed, (
                    f"{table} needs {sum(needs.values()):,} units a second ({each}), but {ceiling} is {allowed:,}: "
                    "raise it in template.yaml (OnDemandThroughput), or lower ReadsPerSecond or WritesPerSecond"))

    def test_the_ceilings_are_above_the_throttles(self):
        for name, parameters in environments().items():
            with self.subTest(name):
                stack = Stack(**parameters)
                rates = {route: throttle(stack, route) for route in NEEDS}
                self.check(stack, {route: (rate, NEEDS[route].largest) for route, rate in rates.items()})
                self.check(stack, {route: (2 * rate, NEEDS[route].many) for route, rate in rates.items()})

    def test_each_route_has_its_units(self):
        self.assertEqual(set(NEEDS), routes(), "NEEDS in infra/lint/capacity_test.py and the template have other routes")

    def test_each_route_except_a_get_has_its_own_throttle(self):
        own = throttles(Stack()).keys() - {"* *"}
        self.assertEqual(own, {route for route in routes() if not route.startswith("GET ")}, (
            "MethodSettings in template.yaml need one entry for each route that is no GET; without it the route is under ReadsPerSecond"))


def routes() -> set[str]:
    """The routes of the functions in template.yaml."""
    events = (f["Properties"]["Events"] for f in source()["Resources"].values() if f["Type"] == "AWS::Serverless::Function")
    return {f"{e['Properties']['Method']} {e['Properties']['Path']}" for each in events for e in each.values()}
