"""The tables of operations/cost.md: what requests cost, and which quota they reach first.

    .build/lint/venv/bin/python infra/lint/cost.py
prints them, to be pasted. AWS's list prices for us-east-1 in dollars, without free
tiers, and an account's default quotas.
"""

import dataclasses
import math
import re

from stack import Stack

MILLION = 1_000_000
MONTH = 730 * 3600  # seconds

# So many requests at this price, then the next.
GATEWAY = (333 * MILLION, 3.50e-6), (667 * MILLION, 2.80e-6), (19_000 * MILLION, 2.38e-6), (math.inf, 1.51e-6)


Units = dict[str, tuple[int, int]]  # read and write units, by table


@dataclasses.dataclass
class Kind:
    """A kind of request, with the resources that an ordinary one uses.

    Units of a table are strongly consistent reads of 4 KB and writes of 1 KB, twice that
    within a transaction. A key, an account or a limiter item is 1 KB.
    """

    name: str
    route: str  # "" for a read that does not pass the gateway
    units: Units
    # For capacity_test.py, if they are more: the units of a larger request, of which many
    # may come at once, and of the largest that is possible.
    many: Units | None = None
    largest: Units | None = None
    milliseconds: int = 0  # that Lambda bills: assumed
    kms: int = 0
    s3: int = 0
    logged: int = 0  # bytes at the template's levels, with the gateway's line: measured in 2026, rounded
    answered: int = 0  # bytes with the headers, in the same way

    def sum(self, which: int) -> int:
        return sum(unit[which] for unit in self.units.values())


KINDS = [
    Kind("GET sync job", "GET /api/v1/scim/sync-jobs/{id}",
         {"AccessTable": (1, 0), "SyncJobsTable": (1, 0)}, milliseconds=15, logged=900, answered=570),
    Kind("POST byok", "POST /api/v1/byok",
         {"AccessTable": (2, 1), "CredentialsTable": (0, 2)}, milliseconds=40, kms=1, logged=1_450, answered=670),
    Kind("POST with Idempotency-Key", "POST /api/v1/byok",
         {"AccessTable": (2, 1), "CredentialsTable": (0, 4), "ControlTable": (1, 4)},
         # A credential of 4 KB with 5 allowed hashes, a record of 2 KB, a row of 1 KB.
         many={"AccessTable": (2 + 5, 1), "CredentialsTable": (0, 2 * 4), "ControlTable": (1, 2 * 2)},
         # A body of 64 KB, kept in the credential and in the idempotency record (66 KB each); 100
         # allowed hashes; a counter for each of the 113 providers in the workspace's row (5 KB).
         # A copy of a request in a full workspace updates that row twice. A claim that is refused
         # reads the row and stores no credential, only its refusal (control). The count of a full
         # workspace is not here: at most 1 MB, 250 read units, once a minute for each workspace.
         largest={"AccessTable": (2 + 100 + 2, 2 * 5), "CredentialsTable": (0, 2 * 66), "ControlTable": (17, 2 * 66)},
         milliseconds=40, kms=1, logged=1_450, answered=670),
    Kind("DELETE file", "DELETE /api/v1/files/{file_id}",
         {"AccessTable": (2, 0), "ControlTable": (0, 1)},
         many={"AccessTable": (2 + 1, 0), "ControlTable": (0, 2)}, largest={"AccessTable": (2 + 2, 0), "ControlTable": (0, 2)},
         milliseconds=40, s3=1, logged=1_500, answered=500),
]
ROUTER = Kind("a router's read", "", {"AccessTable": (1, 0), "CredentialsTable": (1, 0)})


def of_each(what) -> str:
    return ", ".join(f"{what(kind):,}" for kind in KINDS)


# The rows of the table, and the dollars for one request of a kind.
READS = f"DynamoDB reads, 0.125 a million units: {of_each(lambda k: k.sum(0))}"
ROWS = {
    "Lambda requests, 0.20 a million": lambda k: 0.20e-6,
    f"Lambda time, arm64: 0.25 GB × {' or '.join(map(str, sorted({k.milliseconds for k in KINDS})))} ms × 0.0000133334 a GB-second": lambda k: 0.25 * k.milliseconds / 1000 * 0.0000133334,
    READS: lambda k: k.sum(0) * 0.125e-6,
    f"DynamoDB writes, 0.625 a million units: {of_each(lambda k: k.sum(1))}": lambda k: k.sum(1) * 0.625e-6,
    "KMS, 0.03 for 10,000 data keys": lambda k: k.kms * 3e-6,
    f"Logs, 0.50 a GB: {of_each(lambda k: k.logged)} bytes": lambda k: k.logged * 0.50e-9,
    f"Data to the internet, 0.09 a GB: {of_each(lambda k: k.answered)} bytes": lambda k: k.answered * 0.09e-9,
}


def dollars(kind: Kind, requests: float, traces: float) -> dict[str, float]:
    """The cost of so many requests, by the rows of the table."""
    if not kind.route:
        return {READS: requests * ROWS[READS](kind)}
    tiers, left = 0.0, requests
    for size, price in GATEWAY:
        tiers += min(left, size) * price
        left -= min(left, size)
    each = {row: requests * price(kind) for row, price in ROWS.items()}
    return {"API Gateway, 3.50 a million": tiers} | each | {"X-Ray, 5.00 a million traces: 1 in 20": traces * 5e-6}


def costs() -> str:
    """Dollars for a million requests."""
    columns = [dollars(kind, MILLION, MILLION / 20) for kind in KINDS]
    return "\n".join([
        "| | " + " | ".join(kind.name for kind in KINDS) + " |", "|---|" + "---:|" * len(KINDS),
        *(f"| {row} | " + " | ".join(f"{c[row]:.2f}" if c[row] else "–" for c in columns) + " |" for row in columns[0]),
        "| **sum** | " + " | ".join(f"**{sum(c.values()):.2f}**" for c in columns) + " |",
    ])


def throttle(stack: Stack, route: str) -> int:
    """The throttle of a route, in requests a second and at one instant; the stage's if it has none."""
    settings = {f"{s['HttpMethod']} {s['ResourcePath'][1:].replace('~1', '/')}": s
                for s in stack.properties("ApiStage")["MethodSettings"]}
    own = settings.get(route, settings["* *"])
    if own["ThrottlingRateLimit"] != own["ThrottlingBurstLimit"]:
        raise ValueError(f"{route}: rate and burst differ")
    return int(own["ThrottlingRateLimit"])


def limits(stack: Stack, kind: Kind, rate: int) -> list[tuple[float, float, str, str]]:
    """For a rate of requests, each bound: units needed, units allowed, name, and the setting to raise."""
    found = []
    if kind.route:
        found = [
            (rate, throttle(stack, kind.route), "throttle", "throttle"),
            (rate, 10_000, "gateway requests", "API Gateway: throttle rate"),
            (rate * kind.milliseconds / 1000, 1_000, "concurrent executions", "Lambda: concurrent executions"),
            (rate, 10 * 1_000, "Lambda requests", "Lambda: concurrent executions"),
            (rate * kind.kms, 10_000, "KMS requests", "KMS: symmetric cryptographic operations"),
            (rate * kind.s3, 3_500, "S3 deletions of a prefix", "nothing: S3 divides prefixes under load"),
        ]
    for table, units in kind.units.items():
        ceiling = stack.properties(table)["OnDemandThroughput"]
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", table.removesuffix("Table")).lower()
        for need, verb, key in zip(units, ("reads", "writes"), ("MaxReadRequestUnits", "MaxWriteRequestUnits")):
            found.append((rate * need, ceiling[key], f"{name} {verb}", "ceilings"))
            found.append((rate * need, 40_000, f"{name} {verb} of a table", "DynamoDB: table throughput"))
    return sorted((bound for bound in found if bound[0]), key=lambda bound: -bound[0] / bound[1])


def scale(stack: Stack) -> str:
    """The bounds that are reached first."""
    table = ["| requests a second | used up, the first first: needed of allowed | raise, or ask for | dollars a month |",
             "|---|---|---|---:|"]
    for kind in [*KINDS, ROUTER]:
        for rate in (100, 1_000, 10_000):
            bounds = limits(stack, kind, rate)
            full = [bound for bound in bounds if bound[0] >= bound[1]]
            texts = [f"{what} {need:,.0f} of {have:,}" for need, have, what, _ in full or bounds[:1]]
            table.append(f"| {rate:,} {kind.name} | {'' if full else 'nothing; nearest '}{', '.join(texts)} "
                         f"| {'; '.join(dict.fromkeys(bound[3] for bound in full)) or '–'} "
                         # Of each second X-Ray traces the first request, and 1 in 20 of the others.
                         f"| {sum(dollars(kind, rate * MONTH, (1 + (rate - 1) / 20) * MONTH).values()):,.0f} |")
    return "\n".join(table)


def idle(stack: Stack) -> str:
    """Dollars for a month without a request."""
    alarms = [stack.properties(name) for name in stack.of_type("AWS::CloudWatch::Alarm")]
    watched = sum(sum("MetricStat" in query for query in alarm.get("Metrics", [])) or 1 for alarm in alarms)
    keys = len(stack.of_type("AWS::KMS::Key"))
    return "\n".join([
        "| | |", "|---|---:|",
        f"| {keys} KMS keys, 1.00 each (each of a key's first two yearly rotations adds 1.00 a month) | {keys:.2f} |",
        f"| alarms, 0.10 for each metric they watch: {watched} | {watched * 0.10:.2f} |",
        "| dashboard: the account's first three are free, 3.00 else | – |",
        "| tables, recovery, bucket, kept logs: 0.25, 0.20, 0.023 and 0.03 for a GB of each | cents |",
        f"| **sum** | **{keys + watched * 0.10:.2f}** |",
        "", f"A metric of ours costs 0.30 a month, by the hour in which it has data: {len(ours(stack)) * 0.30:.2f} for {len(ours(stack))}.",
    ])


def ours(stack: Stack) -> set[str]:
    """The metrics made from log lines. One with dimensions is named by its filter."""
    made = {name: stack.properties(name)["MetricTransformations"][0] for name in stack.of_type("AWS::Logs::MetricFilter")}
    return {name if t.get("Dimensions") else t["MetricName"] for name, t in made.items()}


if __name__ == "__main__":
    print(costs(), idle(Stack()), scale(Stack()), sep="\n\n")
