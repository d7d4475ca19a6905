"""A client with retries in one file, for Python 3.11 or newer. Copy it.

    api = Client("https://api.example.com/api/v1", key)
    job = api.get_sync_job(job_id)
    credential = api.create_byok_key({"provider": "openai", "key": "sk-..."}, str(uuid.uuid4()))
    api.delete_file(file_id)

It repeats requests by the rules of openapi.yaml, in "Repeating a request".
"""

import http.client
import json
import random
import re
import ssl
import time
import urllib.error
import urllib.request

LARGEST = 1 << 20  # bytes of an answer
LONGEST_WAIT = 60  # seconds, whatever a Retry-After says


class Refused(Exception):
    """The request was refused, and nothing was done. A repeat does not help.

    `status` and `metadata` are for programs: `metadata["reason"]` of a 401 or 403,
    `metadata["issues"]` of a 400, each with a reason. New reasons may come.
    """

    def __init__(self, status, error):
        super().__init__(status, error)
        found = error.get("metadata")
        self.status, self.metadata = status, found if isinstance(found, dict) else {}

    def __str__(self):
        return f"{self.status} {self.args[1]}"[:2000]


class GaveUp(Exception):
    """No try succeeded, or something else than the API answered. After 429s alone nothing was
    done. Else the request may have had its effect: call a create again within 24 hours, under
    the same idempotency key."""


class Client:
    def __init__(self, url, key, sleep=time.sleep):
        """Raises ValueError for http to another machine: the key would cross in clear text."""
        self.url, self.key, self.sleep = str(url).rstrip("/"), key, sleep
        host = r"(https://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])|http://(localhost|127\.0\.0\.1|\[::1\]))"
        if not re.fullmatch(host + r"(:[0-9]{1,5})?(/[!-~]*)?", self.url) or re.search(r"[?#]", self.url):
            raise ValueError("the base URL begins with https://, and has no user, blank, ? or #")

    def get_sync_job(self, job):
        return self._call("GET", f"/scim/sync-jobs/{checked(job)}")["data"]

    def create_byok_key(self, credential, idempotency_key):
        """Stores one credential, however often it is called with both arguments the same.
        Store the idempotency key before the first call, for the case of a GaveUp or a crash."""
        return self._call("POST", "/byok", credential, idempotency_key)["data"]

    def delete_file(self, file, workspace=None):
        """Returns whether this call, or an earlier try of it, deleted the file. After a try
        without an answer a 404 means that the file is gone."""
        query = "" if workspace is None else f"?workspace_id={checked(workspace)}"
        return self._call("DELETE", f"/files/{checked(file)}{query}") is not None

    def _call(self, method, path, body=None, idempotency_key=None):
        headers = {"Authorization": f"Bearer {printable(self.key, 'API key')}"}
        data = None
        if method == "POST":
            headers |= {"Content-Type": "application/json", "Idempotency-Key": printable(idempotency_key, "idempotency key")}
            try:
                data = json.dumps(body, allow_nan=False).encode()
            except (TypeError, ValueError, RecursionError):
                raise ValueError("the credential has something that JSON has not") from None
        # The API repeats no secret: an answer with one is another's, and its text is not shown.
        secrets = [text for text in (self.key, body.get("key") if isinstance(body, dict) else "") if len(str(text)) > 15]
        unknown = 0  # 2: an earlier try may have had its effect; 1: since then a 400 came
        for pause in (1, 2, 4, 8, 16, None):
            request = urllib.request.Request(self.url + path, data, headers, method=method)
            cause = None
            try:
                status, answered, text = send(request)
            except (OSError, http.client.HTTPException, ValueError) as error:
                status, answered, text = 0, {}, b""
                cause = error if isinstance(error, OSError) else type(error).__name__  # its text is the server's
                if isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError):
                    break
            if status == (201 if method == "POST" else 200) and (answer := whole(method, path, text)):
                return answer
            error = member(text, "error")
            ours = error.get("code") == status and not any(str(secret) in str(error) for secret in secrets)
            if status == 429 or status == 0 or status >= 500:
                unknown = 2 if method != "GET" and (status != 429 or not ours) else unknown
            elif not ours or status < 400 or status == 404 and "x-amzn-ErrorType" in answered:
                cause = "this is no answer of the API: look at the base URL and at proxies"
                break
            elif status == 404 and method == "DELETE":
                return {} if unknown else None
            elif status == 400 and unknown == 2 and method == "POST":
                unknown = 1  # the earlier try may have succeeded since: repeat once
            elif unknown and (status, unknown) != (400, 1):
                cause = "an earlier try may have had its effect"
                break
            else:
                raise Refused(status, error)
            if pause is not None:
                after = str(answered.get("Retry-After")) if status == 429 else ""
                wait = min(int(after), LONGEST_WAIT) if re.fullmatch("[0-9]{1,9}", after) else pause
                self.sleep(wait + random.random())
        message = f"{method} {path.partition('?')[0]}: the last status was {status or 'none'}" + (f": {cause}" if cause else "")
        raise GaveUp(message) from (cause if isinstance(cause, Exception) else None)


def checked(identifier):
    """Returns an id for a URL. Our ids have these characters only; another one would make
    another request."""
    text = str(identifier)
    if identifier is None or not re.fullmatch("[A-Za-z0-9_-]+", text):
        raise ValueError("an id has letters, digits, _ and - only")
    return text


def printable(text, name):
    """Returns a header's value. An error does not show it."""
    value = str(text)
    if text is None or isinstance(text, bytes) or not re.fullmatch("[!-~]+", value):
        raise ValueError(f"the {name} is no text, empty, or has a blank, a line break or another unprintable character")
    return value


class Unprocessed(urllib.request.HTTPErrorProcessor):
    """Returns each answer as it is. So no redirect is followed: it would carry the key to
    another host."""

    def http_response(self, request, response):
        return response

    https_response = http_response


def send(request):
    """Returns status, headers and body. It raises OSError, HTTPException or ValueError without
    an answer. Each wait for the server ends after 35 seconds; the whole has no limit."""
    # A proxy of the environment gets https alone: by http it would read the key.
    proxies = {scheme: proxy for scheme, proxy in urllib.request.getproxies().items() if scheme == "https"}
    opener = urllib.request.build_opener(Unprocessed, urllib.request.ProxyHandler(proxies))
    with opener.open(request, timeout=35) as answer:
        text = answer.read(LARGEST)
        if answer.length:
            raise http.client.IncompleteRead(text, answer.length)
        return answer.status, answer.headers, text


def whole(method, path, text):
    """Returns a result that has its operation's form and the id of the path, else None."""
    asked = path.partition("?")[0].rpartition("/")[2]
    if method == "DELETE":
        return {"deleted": True} if parsed(text).get("type") == "file_deleted" and parsed(text).get("id") == asked else None
    found = member(text, "data").get("id")
    return parsed(text) if isinstance(found, str) and found and (method == "POST" or found == asked.lower()) else None


def member(text, name):
    found = parsed(text).get(name)
    return found if isinstance(found, dict) else {}


def parsed(text):
    """Returns the JSON object of an answer, an empty one for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}
