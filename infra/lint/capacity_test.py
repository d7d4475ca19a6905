"""The tables' ceilings let through what the gateway's throttles let through.

A ceiling bounds what a mistake can cost; below the throttle it would turn
requests that were let in into errors. For each environment of samconfig.toml
the largest requests at the sustained rate, and ordinary ones all at once at
rate and burst, must fit.
"""

import dataclasses
import math
import pathlib
import tomllib
import unittest

from stack import Stack
from translate import SOURCE

KB = 1024


def reads(size: int, items: int = 1) -> int:
    """Units of strongly consistent reads, 4 KB each."""
    return items * math.ceil(size / (4 * KB))


def writes(size: int, transaction: bool = False) -> int:
    """Units of a write, 1 KB each, twice that within a transaction."""
    return math.ceil(size / KB) * (2 if transaction else 1)


@dataclasses.dataclass
class Sizes:
    """What a request reads and writes."""

    hashes: int  # of allowed_api_key_hashes
    workspace: int  # the row with its counters
    credential: int
    remembered: int  # the idempotency record with its response
    job: int


# A body of 64 KB at most, most of which is kept, and a counter for each of the
# 113 providers.
LARGEST = Sizes(hashes=100, workspace=5 * KB, credential=66 * KB, remembered=66 * KB, job=4 * KB)
ORDINARY = Sizes(hashes=5, workspace=KB, credential=4 * KB, remembered=2 * KB, job=KB)
ROW = KB  # a key, an account, a limiter item


# Read and write units of each table for one request of each route.
Units = dict[str, tuple[int, int]]


def get_sync_job(size: Sizes) -> Units:
    return {"AccessTable": (reads(ROW), 0), "SyncJobsTable": (reads(size.job), 0)}


def create_byok_key(size: Sizes) -> Units:
    return {
        "AccessTable": (2 * reads(ROW) + reads(ROW, size.hashes), writes(size.workspace)),
        "CredentialsTable": (0, writes(size.credential, transaction=True)),
        "ControlTable": (reads(size.remembered), writes(size.remembered, transaction=True)),
    }


def delete_file(size: Sizes) -> Units:
    return {
        "AccessTable": (2 * reads(ROW) + reads(size.workspace), 0),
        "ControlTable": (0, 2 * writes(ROW)),
    }


ROUTES = {
    "GET /api/v1/scim/sync-jobs/{id}": get_sync_job,
    "POST /api/v1/byok": create_byok_key,
    "DELETE /api/v1/files/{file_id}": delete_file,
}


def needs(size: Sizes, requests: dict[str, int]) -> Units:
    """Units of each table for so many requests of each route a second."""
    total: Units = {}
    for route, count in requests.items():
        for table, (read, write) in ROUTES[route](size).items():
            before = total.get(table, (0, 0))
            total[table] = before[0] + count * read, before[1] + count * write
    return total


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
    def throttles(self, stack: Stack) -> dict[str, tuple[int, int]]:
        """Rate and burst of each route; the rest of the stage has the default."""
        return {
            f"{settings['HttpMethod']} {settings['ResourcePath'][1:].replace('~1', '/')}": (
                int(settings["ThrottlingRateLimit"]),
                int(settings["ThrottlingBurstLimit"]),
            )
            for settings in stack.properties("ApiStage")["MethodSettings"]
            if settings["ResourcePath"] != "/*"
        }

    def check(self, stack: Stack, demand: dict[str, tuple[int, int]]):
        for table, (read, write) in demand.items():
            ceiling = stack.properties(table)["OnDemandThroughput"]
            self.assertGreaterEqual(ceiling["MaxReadRequestUnits"], read, table)
            self.assertGreaterEqual(ceiling["MaxWriteRequestUnits"], write, table)

    def test_they_stand_above_the_throttles(self):
        for name, parameters in environments().items():
            with self.subTest(name):
                stack = Stack(**parameters)
                throttles = self.throttles(stack)
                self.assertEqual(throttles.keys(), ROUTES.keys())
                self.check(stack, needs(LARGEST, {route: rate for route, (rate, _) in throttles.items()}))
                self.check(stack, needs(ORDINARY, {route: sum(both) for route, both in throttles.items()}))


if __name__ == "__main__":
    unittest.main()
