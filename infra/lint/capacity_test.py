"""The tables' ceilings.

A ceiling bounds the cost of a mistake. If it were lower than the throttle, admitted
requests would fail. For each environment of samconfig.toml
the largest requests at the sustained rate, and ordinary ones all at once at
rate and burst, must fit.
"""

import pathlib
import tomllib
import unittest

import cost
from stack import Stack
from translate import SOURCE

# Read and write units of each table: strongly consistent reads of 4 KB, writes of
# 1 KB, twice that within a transaction. A key, an account or a limiter item is 1 KB.
Units = dict[str, tuple[int, int]]

# A body of 64 KB, kept in the credential and in the idempotency record (66 KB each); 100
# allowed hashes; a counter for each of the 113 providers in the workspace's row (5 KB).
# A copy of a request in a full workspace updates that row twice. A claim that is refused
# reads the row and stores no credential, only its refusal (control). The count of a full workspace is not here: at
# most 1 MB, 250 read units, once a minute for each workspace.
LARGEST: dict[str, Units] = {
    "GET /api/v1/scim/sync-jobs/{id}": {"AccessTable": (1, 0), "SyncJobsTable": (1, 0)},
    "POST /api/v1/byok": {"AccessTable": (2 + 100 + 2, 2 * 5), "CredentialsTable": (0, 2 * 66), "ControlTable": (17, 2 * 66)},
    "DELETE /api/v1/files/{file_id}": {"AccessTable": (2 + 2, 0), "ControlTable": (0, 2)},
}
# A credential of 4 KB with 5 allowed hashes, a record of 2 KB, a row of 1 KB.
ORDINARY = LARGEST | {
    "POST /api/v1/byok": {"AccessTable": (2 + 5, 1), "CredentialsTable": (0, 2 * 4), "ControlTable": (1, 2 * 2)},
    "DELETE /api/v1/files/{file_id}": {"AccessTable": (2 + 1, 0), "ControlTable": (0, 2)},
}


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
    def check(self, stack: Stack, units: dict[str, Units], requests: dict[str, int]):
        for table, properties in ((name, stack.properties(name)) for name in stack.of_type("AWS::DynamoDB::Table")):
            for which, ceiling in enumerate(("MaxReadRequestUnits", "MaxWriteRequestUnits")):
                need = sum(count * units[route].get(table, (0, 0))[which] for route, count in requests.items())
                self.assertGreaterEqual(properties["OnDemandThroughput"][ceiling], need, table)

    def test_they_stand_above_the_throttles(self):
        for name, parameters in environments().items():
            with self.subTest(name):
                stack = Stack(**parameters)
                throttles = {route: cost.throttle(stack, route) for route in LARGEST}
                self.check(stack, LARGEST, throttles)
                self.check(stack, ORDINARY, {route: 2 * each for route, each in throttles.items()})


if __name__ == "__main__":
    unittest.main()
