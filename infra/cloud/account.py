"""The AWS account, a stack in it, and the test account that the checks use."""

import dataclasses
import functools
import http.client
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse

import boto3
from botocore.exceptions import ClientError

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / ".build" / "cloud"
# Posted in a provider key and sent as an Idempotency-Key. No log line may contain it.
MARKER = "zQ7-marker-mX4w"
PROVIDER_KEY = f"sk-{MARKER}-AbCd"


code = lambda error: error.response["Error"]["Code"]  # noqa: E731 - AWS's code of a ClientError


@dataclasses.dataclass(frozen=True)
class Response:
    """A response of the API."""

    status: int
    headers: dict[str, str]  # names in lower case
    body: str

    def json(self) -> dict:
        return json.loads(self.body)

    def problem(self, status: int) -> str:
        """The reason why this is not our error envelope, or ""."""
        if self.status != status:
            return f"status {self.status}, not {status}"
        try:
            error = self.json()["error"]
            if not error["message"] or error["code"] != status:
                return "another code or no message in the envelope"
            if not self.headers.get("x-request-id") or error["metadata"]["request_id"] != self.headers["x-request-id"]:
                return "X-Request-Id is not the request_id of the envelope"
        except (ValueError, KeyError, TypeError):
            return "the body is not our envelope"
        return ""

    def __str__(self) -> str:
        return f"{self.status} {self.body}"


class Account:
    """The AWS account of the credentials in the environment."""

    def __init__(self) -> None:
        self.session = boto3.Session()
        self.region = self.session.region_name
        if not self.region:
            raise SystemExit("cloud: no AWS region: set AWS_REGION")
        if self.session.get_credentials() is None:
            raise SystemExit("cloud: no AWS credentials: set AWS_PROFILE, or sign in with `aws sso login`")
        self.client = functools.cache(self.session.client)  # by the name of a service
        caller = self.client("sts").get_caller_identity()
        self.id, self.caller = caller["Account"], caller["Arn"]
        self.partition = self.caller.split(":")[1]

    def role(self) -> str:
        """The ARN of the caller's role, or "". The ARN of a session lacks the role's path."""
        session = re.fullmatch(r"arn:[\w-]+:sts::\d+:assumed-role/([^/]+)/.+", self.caller)
        return self.client("iam").get_role(RoleName=session[1])["Role"]["Arn"] if session else ""

    def pages(self, service: str, operation: str, member: str, **arguments) -> list:
        """All elements of a paginated operation."""
        pages = self.client(service).get_paginator(operation).paginate(**arguments)
        return [element for page in pages for element in page.get(member, [])]

    def stack(self, name: str) -> dict | None:
        """CloudFormation's description of a stack, or None."""
        try:
            return self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        except ClientError as error:
            if code(error) == "ValidationError" and "does not exist" in str(error):
                return None
            raise


class Subject:
    """A deployed stack with its test account."""

    patience = 600.0  # seconds to wait for a metric, a log line or a message
    deployment = None  # the stack's Deployment, if `make prove` made it
    template = None  # the template that it must have, if that is not template.yaml

    def __init__(self, account: Account, name: str) -> None:
        self.account, self.name, self.s3 = account, name, account.client("s3")
        self.describe()
        self.url = urllib.parse.urlsplit(self.outputs["ApiBaseUrl"])
        self.bucket = self.outputs["FilesBucketName"]
        self.began = time.time()
        # Texts that no report and no log line may contain, and the ids of answered requests.
        self.secrets, self.answered = {MARKER}, set()
        WORK.mkdir(parents=True, exist_ok=True)
        self.noted = WORK / f"{self.name}-made.txt"

    def describe(self) -> None:
        """Reads what CloudFormation has about the stack."""
        described, self.declared = self.account.stack(self.name), None
        if described is None:
            raise SystemExit(f"cloud: there is no stack {self.name} in {self.account.region}")
        self.id = described["StackId"]
        self.status, self.role = described["StackStatus"], described.get("RoleARN", "")
        self.undeletable = described.get("EnableTerminationProtection", False)
        self.outputs = {o["OutputKey"]: o["OutputValue"] for o in described.get("Outputs", [])}
        self.parameters = {p["ParameterKey"]: p["ParameterValue"] for p in described.get("Parameters", [])}
        self.resources = self.account.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=self.id)
        self.physical = {r["LogicalResourceId"]: r.get("PhysicalResourceId", "") for r in self.resources}

    def admin(self, *arguments: str, stdin: bytes = b"") -> dict:
        """Runs the operator's command."""
        done = subprocess.run([ROOT / ".build" / "admin", "--stack", self.name, "--json", *arguments], input=stdin, capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"admin {' '.join(arguments[:2])}: {done.stderr.decode().strip()}")
        return json.loads(done.stdout)

    def _note(self, kind: str, identifier: str) -> str:
        """Records a test account or job, in the form that the contract suite uses too."""
        with self.noted.open("a") as file:
            print(kind, identifier, file=file)
        return identifier

    def make_tenant(self) -> None:
        account = self.admin("account", "create", "make prove")
        self.tenant, self.workspace = self._note("account", account["id"]), account["default_workspace_id"]
        self.management = self.admin("key", "create", "check", "--account", self.tenant, "--kind", "management")["key"]
        self.secrets.add(self.management)
        self.job = self._note("job", self.admin("job", "create", "--account", self.tenant)["id"])

    def file(self) -> str:
        """Uploads a file to the test account's workspace."""
        return self.admin("file", "upload", "-", "--account", self.tenant, stdin=b"a file of make prove")["id"]

    def remove_tenants(self) -> None:
        """Removes the noted accounts and jobs, and then the note."""
        noted = self.noted.read_text().splitlines() if self.noted.exists() else []
        for kind, identifier in map(str.split, noted):
            if kind == "job":
                self._remove_item("SyncJobs", {"pk": {"S": f"job#{identifier}"}})
            elif kind == "account":
                self._remove_account(identifier)
        if noted:
            print(f"Removed: {len(noted)} test accounts and jobs. Their log lines stay, and for a day their idempotency records.", file=sys.stderr)
        self.noted.unlink(missing_ok=True)

    def _remove_account(self, account: str) -> None:
        """Removes an account's rows and files, and last its own row: a killed run goes on."""
        if not self._rows("Access", f"account#{account}"):
            return
        for workspace in self.admin("workspace", "list", "--account", account):
            remove_objects(self.s3, self.bucket, f"files/{workspace['id']}/")
            for table in ("Credentials", "Access"):
                self._remove_rows(table, f"workspace#{workspace['id']}")
        for key in self.admin("key", "list", "--account", account):
            self._remove_item("Control", {"pk": {"S": f"limit#delete-file#{key['hash']}"}})
            self._remove_rows("Access", f"key#{key['hash']}")
        self._remove_rows("Access", f"account#{account}")

    def _rows(self, table: str, pk: str) -> list[dict]:
        return self.account.pages(
            "dynamodb", "query", "Items", TableName=self.outputs[table + "TableName"], ConsistentRead=True,
            KeyConditionExpression="pk = :pk", ProjectionExpression="pk, sk", ExpressionAttributeValues={":pk": {"S": pk}},
        )

    def _remove_rows(self, table: str, pk: str) -> None:
        for key in sorted(self._rows(table, pk), key=lambda row: "#" not in row["sk"]["S"]):  # list entries before the row
            self._remove_item(table, key)

    def _remove_item(self, table: str, key: dict) -> None:
        self.account.client("dynamodb").delete_item(TableName=self.outputs[table + "TableName"], Key=key)

    def versions(self, key: str) -> int:
        """Counts the versions and delete markers under a key."""
        listed = self.s3.list_object_versions(Bucket=self.bucket, Prefix=key)
        return len(listed.get("Versions", [])) + len(listed.get("DeleteMarkers", []))

    def key_of(self, file: str) -> str:
        return f"files/{self.workspace}/{file}"

    def redact(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "<secret>")
        return text

    def send(self, method: str, path: str, key: str = "", body: bytes | None = None, **headers: str) -> Response:
        """Sends a request below /api/v1 unchanged, and reads the whole response."""
        connect = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        connection = connect(self.url.netloc, timeout=120)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            headers["Authorization"] = "Bearer " + key
        try:
            connection.request(method, self.url.path + path, body, headers)
            got = connection.getresponse()
            names = {name.lower(): value for name, value in got.getheaders()}
            response = Response(got.status, names, got.read().decode(errors="replace"))
        finally:
            connection.close()
        if response.status < 400 and "x-request-id" in names:
            self.answered.add(names["x-request-id"])
        return response

    def get_job(self) -> Response:
        return self.send("GET", f"/scim/sync-jobs/{self.job}", self.management)

    def create(self, **members) -> Response:
        body = json.dumps({"provider": "openai", "key": PROVIDER_KEY} | members).encode()
        return self.send("POST", "/byok", self.management, body, Content_Type="application/json")

    def delete(self, file: str) -> Response:
        return self.send("DELETE", f"/files/{file}", self.management)


def remove_objects(s3, bucket: str, prefix: str = "") -> None:
    """Removes every version and delete marker under a prefix."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        found = [{"Key": v["Key"], "VersionId": v["VersionId"]} for v in page.get("Versions", []) + page.get("DeleteMarkers", [])]
        if found and (errors := s3.delete_objects(Bucket=bucket, Delete={"Objects": found}).get("Errors")):
            raise RuntimeError(f"emptying bucket {bucket}: {errors[0]['Code']}")
