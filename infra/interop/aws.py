"""Calls AWS's JSON services with the standard library: Signature Version 4 and a POST."""

import base64
import datetime
import hashlib
import hmac
import json
import urllib.error
import urllib.request
from urllib.parse import urlsplit

TARGETS = {"dynamodb": "DynamoDB_20120810", "kms": "TrentService"}


class Fault(Exception):
    """What AWS answered instead; the text is its own name for it."""


class Service:
    """One of AWS's services at an endpoint."""

    def __init__(self, name: str, stack: dict):
        self._name = name
        self._endpoint = stack["endpoints"][name]
        self._region = stack["region"]
        self._id, self._secret = stack["access_key_id"], stack["secret_access_key"]

    def call(self, operation: str, **arguments) -> dict:
        body = json.dumps(arguments).encode()
        request = urllib.request.Request(self._endpoint + "/", body, self._signed(operation, body))
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Fault(json.load(error)["__type"].rpartition("#")[2]) from None

    def _signed(self, operation: str, body: bytes) -> dict[str, str]:
        """The headers of a request, its signature among them."""
        time = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "host": urlsplit(self._endpoint).netloc,
            "x-amz-date": time,
            "x-amz-target": f"{TARGETS[self._name]}.{operation}",
        }
        names = ";".join(headers)
        canonical = "\n".join(
            ["POST", "/", "", *(f"{n}:{v}" for n, v in headers.items()), "", names, hexhash(body)]
        )
        scope = f"{time[:8]}/{self._region}/{self._name}/aws4_request"
        key = b"AWS4" + self._secret.encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hexhash(canonical.encode())}"
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._id}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return headers


def hexhash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def plain(value: dict):
    """The Python value of one of DynamoDB's."""
    (kind, content), = value.items()
    match kind:
        case "N":
            return int(content)
        case "B":
            return base64.b64decode(content)
        case "M":
            return {name: plain(v) for name, v in content.items()}
        case "L":
            return [plain(v) for v in content]
        case "NULL":
            return None
    return content
