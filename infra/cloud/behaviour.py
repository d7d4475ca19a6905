"""AWS's responses to our requests. Each check knows those that the product handles."""

import concurrent.futures
import dataclasses
import functools
import http.client
import json
import re
import socket
import ssl

import yaml
from account import PROVIDER_KEY, ROOT, Subject, code
from botocore.exceptions import ClientError
from checks import CHANGED, OWN, Differs, Failed, NotChecked, check, until
from opener import Place, Record, Refused, open_record  # it shares no code with shared/seal

TYPES = 'API Gateway Developer Guide, "Gateway response types"'


def refused(response, status: int) -> str:
    if problem := response.problem(status):
        raise Failed(f"{problem}: {response}")
    return str(response)


def expect(holds: bool, seen: str) -> str:
    if not holds:
        raise Failed(seen)
    return seen


@check("400 in our envelope for 7 MB", "Lambda quotas: 6 MB a request; " + TYPES + ": REQUEST_TOO_LARGE; a 413 by the gateway itself DIFFERS")
def large_body(s: Subject) -> str:
    got = s.send("POST", "/byok", s.management, b" " * (7 << 20), Content_Type="application/json")
    if got.status == 413:
        raise Differs(str(got))
    return refused(got, 400)


@check("TLS 1.1 and plain HTTP are refused, TLS 1.2 or 1.3 is accepted", "the template's SecurityPolicy")
def tls(s: Subject) -> str:
    if s.url.scheme != "https":
        raise NotChecked(f"{s.url.scheme} has no TLS")
    accepted = []
    for version in (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context()
        context.set_ciphers("DEFAULT@SECLEVEL=0")  # otherwise this side would refuse TLS 1.1
        context.minimum_version = context.maximum_version = version
        try:
            with socket.create_connection((s.url.hostname, 443), 10) as plain, context.wrap_socket(plain, server_hostname=s.url.hostname):
                accepted.append(version.name)
        except OSError:
            pass
    try:
        connection = http.client.HTTPConnection(s.url.hostname, 80, timeout=10)
        connection.request("GET", s.url.path + "/nothing")
        if connection.getresponse().status in (200, 404):
            accepted.append("HTTP")
    except OSError:
        pass
    return expect(accepted in (["TLSv1_2"], ["TLSv1_3"], ["TLSv1_2", "TLSv1_3"]), f"accepted: {accepted}")


def works(s: Subject) -> str:
    """Uses each operation of infra/openapi.yaml once, with its first example and a job's id. A low
    throttle may refuse a request for a while."""
    seen = []
    for path, methods in yaml.safe_load((ROOT / "infra/openapi.yaml").read_text())["paths"].items():
        for method, operation in methods.items():
            examples = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("examples", {})
            body = next((json.dumps(e["value"]).encode() for e in examples.values()), None)
            headers = {"Content_Type": "application/json"} if body else {}
            send = functools.partial(s.send, method.upper(), re.sub(r"{\w+}", s.job, path), s.management, body, **headers)
            got = until(s.patience, lambda send=send: None if (a := send()).status == 429 else a)
            right = got is not None and (got.status < 300 or method == "delete" and got.status == 404)  # no file has the job's id
            seen.append(f"{operation['operationId']} {expect(right, str(got)) and got.status}")
    return ", ".join(seen)


@check("the stored key opens for its own tenant and for no other", 'KMS Developer Guide, "Encryption context"; infra/cloud/opener.py')
def sealing(s: Subject) -> str:
    made = s.create()
    expect(made.status == 201, str(made))
    credential, provider = made.json()["data"]["id"], made.json()["data"]["provider"]
    row = s.account.client("dynamodb").get_item(
        TableName=s.outputs["CredentialsTableName"], ConsistentRead=True,
        Key={"pk": {"S": f"workspace#{s.workspace}"}, "sk": {"S": f"credential#{credential}"}},
    )["Item"]
    sealed = {name: value.get("B") or value.get("S") or int(value["N"]) for name, value in row["seal"]["M"].items()}
    record = Record(**sealed)

    def decrypt(arn: str, wrapped: bytes, context: dict) -> bytes:
        try:
            return s.account.client("kms").decrypt(KeyId=arn, CiphertextBlob=wrapped, EncryptionContext=context)["Plaintext"]
        except ClientError as error:
            if code(error) == "AccessDeniedException":
                raise NotChecked("these credentials may not decrypt: use those of RouterRoleArn") from None
            raise Refused(code(error)) from None

    own = Place(s.tenant, s.workspace, credential, provider)
    opened = open_record(record, own, [s.outputs["SealingKeyArn"]], decrypt)
    expect(opened == PROVIDER_KEY.encode(), "the stored key is not the one that was sent")
    for field in dataclasses.fields(Place):
        try:
            open_record(record, dataclasses.replace(own, **{field.name: "another"}), [s.outputs["SealingKeyArn"]], decrypt)
        except Refused:
            continue
        raise Failed(f"it opens for another {field.name}")
    return "it opens for its own place only"


def absent(s: Subject, key: str) -> str:
    """S3's response to If-Match: * without a current version."""
    try:
        s.s3.delete_object(Bucket=s.bucket, Key=key, IfMatch="*")
    except ClientError as error:
        return expect(code(error) in ("NoSuchKey", "PreconditionFailed"), code(error))
    raise Failed("If-Match: * without a current version is a 204")


@check("an answer without any item names its table, and says that no key is left", "Amazon DynamoDB API Reference, BatchGetItem; shared/calls refuses any other")
def batch_without_items(s: Subject) -> str:
    table = s.outputs["AccessTableName"]
    got = s.account.client("dynamodb").batch_get_item(RequestItems={table: {"Keys": [{"pk": {"S": "prove#missing"}, "sk": {"S": "missing"}}]}})
    return expect(got.get("Responses") == {table: []} and got.get("UnprocessedKeys") == {}, f"{got.get('Responses')}, {got.get('UnprocessedKeys')}")


@check("a missing key is 404 or 412; a deletion has a request id; a listing names its bucket",
       'Amazon S3 User Guide, "How to perform conditional deletes"; Amazon S3 API Reference, "Common response headers"', OWN)
def s3_answers(s: Subject) -> str:
    seen = absent(s, "files/prove/missing")
    s.s3.put_object(Bucket=s.bucket, Key="files/prove/present", Body=b"x")
    done = s.s3.delete_object(Bucket=s.bucket, Key="files/prove/present", IfMatch="*")
    listed = s.s3.list_object_versions(Bucket=s.bucket, Prefix="files/prove/")
    return expect(bool(done["ResponseMetadata"].get("RequestId")) and listed["Name"] == s.bucket, seen)


@check("each operation works after the change; no version and no marker is left; S3 confirms each version by its id",
       'Amazon S3 User Guide, "Required permissions for Amazon S3 API operations"; Amazon S3 API Reference, DeleteObjects', CHANGED)
def versions(s: Subject) -> str:
    works(s)
    file, hidden, key = s.file(), s.file(), "files/prove/confirmed"
    ids = {s.s3.put_object(Bucket=s.bucket, Key=k, Body=b"x")["VersionId"] for k in (s.key_of(file), key, key)}
    before, got = s.versions(s.key_of(file)), s.delete(file)
    expect(before == 2 and got.status == 200 and not s.versions(s.key_of(file)), f"{before} versions, {got}")
    s.s3.delete_object(Bucket=s.bucket, Key=s.key_of(hidden))
    seen, got = absent(s, s.key_of(hidden)), s.delete(hidden)
    expect(got.status == 200 and not s.versions(s.key_of(hidden)), f"a hidden file: {seen}, then {got}")
    listed = [{"Key": key, "VersionId": v["VersionId"]} for v in s.s3.list_object_versions(Bucket=s.bucket, Prefix=key)["Versions"]]
    done = s.s3.delete_objects(Bucket=s.bucket, Delete={"Objects": listed}).get("Deleted", [])
    return expect(len(listed) == 2 and {d.get("VersionId") for d in done} == {v["VersionId"] for v in listed} <= ids, f"{len(done)} of 2 confirmed")


@check("429 in our envelope with Retry-After: 1", TYPES + ": THROTTLED, as the template declares it", CHANGED)
def gateway_throttle(s: Subject) -> str:
    with concurrent.futures.ThreadPoolExecutor(60) as pool:  # more than once: the gateway applies throttles on a best-effort basis
        limited = until(s.patience, lambda: [a for a in pool.map(lambda _: s.get_job(), range(60)) if a.status == 429])
    expect(bool(limited), "none of 60 requests at once was refused")
    refused(limited[0], 429)
    return expect(limited[0].headers.get("retry-after") == "1", str(limited[0]))


@check("400 with the firewall's own envelope, whose request id is none", 'AWS WAF Developer Guide, "Customized web requests and responses"', CHANGED)
def firewall_body(s: Subject) -> str:
    got = s.send("POST", "/byok", s.management, b" " * (70 << 10), Content_Type="application/json")
    if got.headers.get("x-request-id") != "none":
        raise Differs(f"the function refused it: {got}")
    return expect(not got.problem(400) and '"too_large"' in got.body, str(got))
