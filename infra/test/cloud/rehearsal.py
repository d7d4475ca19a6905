"""Plays the life of a stack on ministack, an engine of AWS's APIs that nobody here wrote, with the real SAM and AWS CLIs.

It builds and deploys, makes the checks of `make prove` and `make verify`, changes the stack behind
their back to see each check fail, follows the runbook, updates, deletes, and adopts what a deleted
stack leaves. engine.py lists what the engine does otherwise than AWS documents.
"""

import contextlib
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from unittest import mock

import cloud
import observed
from account import ROOT, WORK, Subject
from behaviour import works
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from checks import CHANGED, CHECKS, LIVE, OWN, PASS, Report, make
from declared import declared
from engine import CONTRACT, METRIC_MATH, UNJUDGED, UNTAGGED, VERDICTS, Engine, EngineDeployment, stripped
from faults import FAULTS, MISSING, STRANGERS, UNDONE, WITHOUT_FAULT, another_version, failing
from life import Cleaner
from runbook import ENVIRONMENT, REPOSITORY, VARIABLES, follow, sections
from stack import yaml_parse

NAME = "signalbox-rehearsal"
problems: list[str] = []
unplayed: list[str] = []


def holds(condition, problem: str) -> None:
    if not condition:
        problems.append(problem)
        print(f"  WRONG: {problem}", flush=True)


@contextlib.contextmanager
def step(what: str):
    began = time.monotonic()
    print(f"== {what}", flush=True)
    try:
        yield
    except subprocess.TimeoutExpired:  # a busy machine proves nothing
        unplayed.append(what)
    except Exception as error:  # the next steps may find more
        holds(False, f"{what}: {type(error).__name__}: {error}")
    print(f"   {time.monotonic() - began:.1f} s", flush=True)


def rolled_back(d: EngineDeployment, built: pathlib.Path) -> None:
    """A first deployment that fails leaves protected tables, and the runbook removes them."""
    template = built.read_text()
    built.write_text(failing(template))
    d.update(built.parent, {"Architecture": d.architectures[0]})
    built.write_text(template)
    events = d.account.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=d.name)
    holds(any(METRIC_MATH in e.get("ResourceStatusReason", "") for e in events), f"no event with {METRIC_MATH!r}")
    holds(d.account.stack(d.name)["StackStatus"] == "ROLLBACK_COMPLETE", "the stack is not in ROLLBACK_COMPLETE")
    skipped = {e["LogicalResourceId"] for e in events if e["ResourceStatus"] == "DELETE_SKIPPED" and e["ResourceType"] != "AWS::Lambda::Version"}
    holds(skipped and skipped <= {"AccessTable", "CredentialsTable", "SyncJobsTable"}, f"the rollback leaves {skipped}")
    wrong = follow("deploy", ["A first deployment that failed"], d.name, {})
    holds(not wrong, f"deploy.md, A first deployment that failed: {wrong}")
    holds(not remains(d), f"after the runbook there remain {remains(d)}")


def protected(d: EngineDeployment) -> None:
    """`make protect` holds until the runbook takes it away. The check `protection` reads what it set."""
    subprocess.run(["make", "--silent", "-C", ROOT, "protect", f"STACK={d.name}"], check=True, capture_output=True)
    with contextlib.suppress(ClientError):
        d.account.client("cloudformation").delete_stack(StackName=d.name)
        holds(False, "make protect did not stop a deletion")


def remains(d: EngineDeployment) -> set[str]:
    """The resources in the account with the stack's name, and its usable keys."""
    client, found = d.account.client, set()
    found |= {f"table {t}" for t in client("dynamodb").list_tables()["TableNames"]}
    found |= {f"bucket {b['Name']}" for b in client("s3").list_buckets()["Buckets"] if b["Name"].startswith(d.name) and b["Name"] != d.bucket}
    found |= {f"log group {g['logGroupName']}" for g in d.account.pages("logs", "describe_log_groups", "logGroups")}
    found |= {f"role {r['RoleName']}" for r in d.account.pages("iam", "list_roles", "Roles") if r["RoleName"].startswith(d.name)}
    found |= {f"function {f['FunctionName']}" for f in d.account.pages("lambda", "list_functions", "Functions")}
    found |= {f"api {a['id']}" for a in d.account.pages("apigateway", "get_rest_apis", "items")}
    found |= {f"alarm {a['AlarmName']}" for a in d.account.pages("cloudwatch", "describe_alarms", "MetricAlarms")}
    for key in d.account.pages("kms", "list_keys", "Keys"):
        if client("kms").describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"] == "Enabled":
            found.add(f"key {key['KeyId']}")
    return found


def verdicts(reports: list[Report], s: Subject) -> None:
    """The verdicts are PASS, or what engine.py says."""
    for r in reports:
        verdict, seen = VERDICTS.get(r.check.name, (PASS, ""))
        holds(r.check.name in UNJUDGED or r.verdict == verdict and re.search(seen, r.seen), f"{r.check.name}: {r.verdict}, not {verdict}: {r.seen}")
    if any(r.check.name == "contract" for r in reports):
        tests = observed.results((WORK / f"{s.name}-contract.json").read_text())
        holds(all(map(CONTRACT.fullmatch, tests["fail"])), f"the contract suite: {', '.join(tests['fail'])}")
        for pattern in observed.GATEWAY_DECIDES:
            holds(any(re.fullmatch(pattern, name) for names in tests.values() for name in names), f"the contract suite has no test {pattern}")


def faults(d: EngineDeployment) -> None:
    """Each check notices a change behind its back."""
    s = d.subject()
    s.patience = 1
    with contextlib.suppress(ClientError):  # the stack has no router
        d.account.client("iam").detach_role_policy(RoleName="router", PolicyArn=s.physical["RouterPolicy"])
    s.make_tenant()
    works(s)  # so that each function has logged a request
    live = {c.name: c for c in CHECKS if c.stage == LIVE}
    asked: set[str] = set()

    def report(name: str) -> Report:
        s.describe()
        with mock.patch("sys.stderr"), recorded(asked):
            return make([live[name]], s)[0]

    try:
        holds(live.keys() - WITHOUT_FAULT - {"access"} == {name for name, *_ in FAULTS}, "a check has no fault, or a fault no check")
        before = {name: report(name) for name in live if name != "contract"}
        for name, what, change, restore, pattern in FAULTS:
            made = change(s)
            r = report(name)
            restore(s, made)
            holds(r.verdict != PASS and re.search(pattern, r.seen) and (name in VERDICTS or not re.search(pattern, before[name].seen)),
                  f"{name} does not notice {what}: {r.verdict}: {r.seen}; before: {before[name].seen}")
        for _, _, change in STRANGERS:
            change(s)
        r = report("access")
        for what, seen, _ in STRANGERS:
            holds(r.verdict != PASS and seen in r.seen and seen not in before["access"].seen, f"access does not notice {what}: {r.verdict}: {r.seen}; before: {before['access'].seen}")
        for undo in UNDONE:
            undo(s)
        for name, what, change in MISSING:
            change(s)
            r = report(name)
            holds(r.verdict == PASS, f"{name} does not accept {what}: {r.verdict}: {r.seen}")
    finally:
        with recorded(asked):
            s.remove_tenants()
    policy = json.loads((ROOT / "infra/cloud/verifier-policy.json").read_text())["Statement"]
    allowed = {a for p in policy for a in (p["Action"] if isinstance(p["Action"], list) else [p["Action"]])}
    lacking = {action for action in asked if not any(fnmatch.fnmatchcase(action, a) for a in allowed)}
    holds(asked and not lacking, f"infra/cloud/verifier-policy.json lacks {lacking}")


# The action of IAM that an operation needs, if it has another name.
ACTIONS = {"s3:GetBucketNotificationConfiguration": "s3:GetBucketNotification", "s3:GetBucketReplication": "s3:GetReplicationConfiguration",
           "s3:ListObjectVersions": "s3:ListBucketVersions", "s3:DeleteObjects": "s3:DeleteObjectVersion"}


def recorded(asked: set[str]):
    """Notes the actions that the calls to AWS need."""
    ask = BaseClient._make_api_call

    def note(client, operation: str, arguments: dict):
        action = f"{client.meta.service_model.service_name}:{operation}"
        asked.add(ACTIONS.get(action, action))
        return ask(client, operation, arguments)

    return mock.patch.object(BaseClient, "_make_api_call", note)


# infra/admin/testdata plays the operator's command.
ASKS_AWS = re.compile(r"\b(ask|aws|functions|output|physical)\b")
# The sections that are not played here, with the reasons.
UNPLAYED = {
    ("daily", "The operator's command"): "downloads a release",
    ("daily", "Another sealing key"): "the engine's KMS has no ReEncrypt: TestAnInterruptedRewrapGoesOn in infra/admin",
    ("deploy", "A first deployment that failed"): "played after the rollback",
    ("alarms", "SealingFailures"): "played when it happens",
    ("incidents", "The way back"): "played when it happens",
    ("restore", "Some rows were lost or spoilt"): "played with the next one",
    ("restore", "The settings that a restore loses"): "played with the next one",
    ("restore", "Take a stack down"): "played at the end",
    ("restore", "A new stack on retained data"): "played at the end",
}
# Sections that a page refers to, before and after. AWS keeps five versions of a policy.
WITH = {
    "The first deployment": ["The first deployment"] * 6,
    "The table was deleted": ["The table was deleted", "The settings that a restore loses"],
    "The whole table back to an earlier moment":
        ["Some rows were lost or spoilt", "The whole table back to an earlier moment", "The settings that a restore loses"],
}


def state(s: Subject) -> str:
    return s.account.client("kms").describe_key(KeyId=s.physical["SealingKey"])["KeyMetadata"]["KeyState"]


# A page, what happens before it is followed, and what must hold after it and not before.
INCIDENTS = [
    ("alarms", "SealingFailures", lambda s: s.account.client("kms").disable_key(KeyId=s.physical["SealingKey"]), lambda s: state(s) == "Enabled"),
    ("alarms", "SealingFailures", lambda s: s.account.client("kms").schedule_key_deletion(KeyId=s.physical["SealingKey"]), lambda s: state(s) == "Enabled"),
    ("incidents", "The way back", another_version,
     lambda s: s.account.client("lambda").get_alias(FunctionName=s.physical["CreateByokKeyFunction"], Name="live")["FunctionVersion"] == "1"),
]


def incidents(d: EngineDeployment) -> None:
    """Each incident happens, and its page ends it."""
    s = d.subject()
    for page, heading, happens, ended in INCIDENTS:
        with step(f"{page}.md, {heading}"):
            happens(s)
            holds(not ended(s), f"{heading}: nothing happened")
            wrong = follow(page, [heading], d.name, {"VERSION": "1"})
            holds(not wrong and ended(s), f"{page}.md, {heading}: {wrong or 'it goes on'}")


def runbook(d: EngineDeployment) -> None:
    iam = d.account.client("iam")
    VARIABLES.unlink(missing_ok=True)
    for name in ("router", f"deploy-{d.name}"):  # one that exists gets the new trust
        iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    for page in ("deploy", "daily", "incidents", "alarms", "restore"):
        for heading, blocks in sections(page).items():
            if ASKS_AWS.search("".join(blocks)) and (page, heading) not in UNPLAYED:
                with step(f"{page}.md, {heading}"):
                    wrong = play(d, page, WITH.get(heading, [heading]))
                    holds(not wrong, f"{page}.md, {heading}: {wrong}")
    arn = f"arn:aws:iam::{d.account.id}:{{}}-{d.name}".format
    verify = f"{ENVIRONMENT}-verify"
    variables = {f"{e} AWS_REGION {d.account.region}" for e in (ENVIRONMENT, verify)} | {
        f"{ENVIRONMENT} AWS_ROLE_ARN {arn('role/deploy')}", f"{ENVIRONMENT} AWS_SERVICE_ROLE_ARN {arn('role/cloudformation')}", f"{verify} AWS_VERIFY_ROLE_ARN {arn('role/verify')}"}
    holds({*VARIABLES.read_text().splitlines()} == variables, f"GitHub gets {VARIABLES.read_text()}")
    for name, environment in (("deploy", ENVIRONMENT), ("verify", verify)):
        (statement,) = iam.get_role(RoleName=f"{name}-{d.name}")["Role"]["AssumeRolePolicyDocument"]["Statement"]
        subjects = [f"repo:{repository}:environment:{environment}" for repository in (REPOSITORY, REPOSITORY.replace("/", "@1001/") + "@2002")]
        claims = {"aud": "sts.amazonaws.com", "ref": "refs/heads/main", "sub": subjects,
                  "job_workflow_ref": f"{REPOSITORY}/.github/workflows/deploy.yml@refs/heads/main"}
        trusted = {"StringEquals": {f"token.actions.githubusercontent.com:{claim}": value for claim, value in claims.items()}}
        holds(statement["Condition"] == trusted, f"{name} trusts {statement}")
    documents = {policy: iam.get_role_policy(RoleName=f"{name}-{d.name}", PolicyName=policy)["PolicyDocument"] for name, policy in (("deploy", "deployer"), ("verify", "verifier"))}
    managed = [arn("policy/boundary")]
    for name, count in (("cloudformation", 2), ("administer", 3)):
        attached = [p["PolicyArn"] for p in iam.list_attached_role_policies(RoleName=f"{name}-{d.name}")["AttachedPolicies"]]
        holds(len(attached) == count, f"{name} has {attached}")
        managed += attached
    for policy in managed:
        version = iam.get_policy(PolicyArn=policy)["Policy"]["DefaultVersionId"]
        holds(version == ("v6" if policy == managed[0] else "v1"), f"{policy} is {version}")
        documents[policy] = iam.get_policy_version(PolicyArn=policy, VersionId=version)["PolicyVersion"]["Document"]
    for policy, document in documents.items():
        holds(not re.search("ACCOUNT|REGION|STACK|REST_ID|_KEY|DOMAIN|ZONE|BOUNDARY|ARTIFACTS", json.dumps(document)), f"{policy} has a gap: {document}")


def play(d: EngineDeployment, page: str, headings: list[str]) -> str:
    """Follows sections, with an account of their own."""
    s = d.subject()
    s.make_tenant()
    try:
        s.admin("key", "create", "another", "--account", s.tenant)
        key, other = (k["hash"] for k in s.admin("key", "list", "--account", s.tenant))
        first, second = (s.create(allowed_api_key_hashes=[key]).json()["data"]["id"] for _ in range(2))
        d.account.client("iam").attach_role_policy(RoleName="router", PolicyArn=s.outputs["RouterPolicyArn"])
        if page == "restore":
            lose(d, s.outputs["AccessTableName"], headings[0] == "The table was deleted")
        return follow(page, headings, d.name, {
            "SIGNALBOX_ACCOUNT": s.tenant, "ACCOUNT": s.tenant, "WORKSPACE": s.workspace, "CREDENTIAL": first, "NEW_CREDENTIAL": second, "KEY": key[:12], "NEW_KEY": other[:12],
            "JOB": s.job, "MOMENT": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        })
    finally:
        s.remove_tenants()


def lose(d: EngineDeployment, table: str, lost: bool) -> None:
    """Backs a table up, and deletes it if it is lost."""
    dynamodb = d.account.client("dynamodb")
    dynamodb.create_backup(TableName=table, BackupName="before")
    if lost:
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        dynamodb.delete_table(TableName=table)


def deleted(d: EngineDeployment, s: Subject) -> None:
    """What remains is what the template keeps, and a new stack adopts it."""
    wrong = follow("restore", ["Take a stack down"], d.name, {})
    holds(not wrong, f"restore.md, Take a stack down: {wrong}")
    kept = {n for n, r in declared(s).expected.items() if r.get("DeletionPolicy", "Delete").startswith("Retain")}
    kinds = {"AWS::DynamoDB::Table": "table", "AWS::S3::Bucket": "bucket", "AWS::Logs::LogGroup": "log group", "AWS::KMS::Key": "key"}
    expected = {f"{kinds[r['Type']]} {s.physical[n]}" for n, r in declared(s).expected.items() if n in kept and r["Type"] in kinds}
    left = {name for name in remains(d) if not name.endswith(("-restored", "-before"))}  # nobody may ask for them any more
    holds(left == expected, f"after the deletion there remain {left ^ expected} more or fewer than the template keeps")
    values = {re.sub(r"\B(?=[A-Z])", "_", name).upper(): physical for name, physical in s.physical.items()}
    # The engine imports no policy of a bucket.
    without = {r' *{"ResourceType": "AWS::S3::BucketPolicy".*\n': "", "(?=>adopt.json)": r"""| sed '/"FilesBucketPolicy": {/,/^  },/d' """}
    wrong = follow("restore", ["A new stack on retained data"], d.name, values, without)
    holds(not wrong, f"restore.md, A new stack on retained data: {wrong}")
    holds(d.account.stack(d.name)["StackStatus"] == "IMPORT_COMPLETE", f"after the import: {d.account.stack(d.name)['StackStatus']}")


def cleaned(d: EngineDeployment) -> None:
    """`make prove-clean` removes the rest, because it has the tag."""
    d.account.client("cloudformation").delete_stack(StackName=d.name)
    while d.account.stack(d.name):
        time.sleep(0.1)
    Cleaner(d.account, d.name).clean()
    left = {name for name in remains(d) if not name.startswith((*UNTAGGED, f"table {d.name}-AccessTable"))}  # a restored table has no tag
    holds(not left, f"after make prove-clean there remain {left}")


def main() -> int:
    began = time.monotonic()
    subprocess.run([ROOT / "infra/release/venv", ROOT / "infra/release", ROOT / ".build/sam"], check=True)
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        engine = Engine(pathlib.Path(folder))
        try:
            d = EngineDeployment(engine.account, NAME)
            with step("sam build"):
                d.prepare()
            built = d.folder(d.architectures[0]) / "template.yaml"
            built.write_text(json.dumps(stripped(yaml_parse(built.read_text()))))
            with step("sam deploy, a creation that fails: rolled back, and cleaned as the runbook says"):
                rolled_back(d, built)
            with step("sam deploy"):
                s = d.deploy(OWN)
            with step("make protect"):
                protected(d)
                s.describe()
            with step("the checks of make verify and make prove, the contract suite among them"):
                verdicts(cloud.checked(s, LIVE, OWN), s)
            with step("the runbook"):
                runbook(d)
                protected(d)
                incidents(d)
            with step("each check, with a change behind its back"):
                faults(d)
            with step("sam deploy, other parameters under the service role, and the checks after it"):
                d.role = d.account.remembered = f"arn:aws:iam::{d.account.id}:role/cloudformation-{NAME}"
                s = d.deploy(CHANGED)
                verdicts(cloud.checked(s, CHANGED), s)
            with step("the deletion: what remains is what the template keeps, and a new stack adopts it"):
                deleted(d, d.subject())
            with step("make prove-clean"):
                cleaned(d)
        finally:
            engine.close()
    print(f"{time.monotonic() - began:.0f} s; {len(problems)} problems; {len(unplayed)} not played")
    for what in unplayed:
        print(f"NOT PLAYED, it took too long here: {what}")
    for problem in problems:
        print(f"* {problem}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
