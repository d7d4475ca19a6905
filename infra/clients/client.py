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
import time
import urllib.error
import urllib.parse
import urllib.request


class Refused(Exception):
    """The request was refused, and nothing was done. A repeat does not help.

    `status` and `metadata` are for programs: `metadata["reason"]` of a 401 or 403,
    `metadata["issues"]` of a 400, each with a reason. New reasons may come.
    """

    def __init__(self, status, error):
        super().__init__(f"{status} {error.get('message')}: {error.get('metadata')}")
        self.status, self.metadata = status, error.get("metadata", {})


class GaveUp(Exception):
    """No try succeeded. After 429s alone nothing was done. Else the request may have had
    its effect: call a create again within 24 hours, under the same idempotency key."""


class Client:
    def __init__(self, url, key, sleep=time.sleep):
        self.url, self.key, self.sleep = url, key, sleep

    def get_sync_job(self, job):
        return self._call("GET", f"/scim/sync-jobs/{job}")["data"]

    def create_byok_key(self, credential, idempotency_key):
        """Stores one credential, however often it is called with both arguments the same.
        Store the idempotency key before the first call, for the case of a GaveUp or a crash."""
        return self._call("POST", "/byok", credential, idempotency_key)["data"]

    def delete_file(self, file, workspace=None):
        """Returns whether this call, or an earlier try of it, deleted the file. After a try
        without an answer a 404 means that the file is gone."""
        query = f"?workspace_id={workspace}" if workspace else ""
        return self._call("DELETE", f"/files/{file}{query}") is not None

    def _call(self, method, path, body=None, idempotency_key=None):
        headers = {"Authorization": f"Bearer {self.key}"}
        if body is not None:
            headers |= {"Content-Type": "application/json", "Idempotency-Key": idempotency_key}
        data = None if body is None else json.dumps(body).encode()
        unknown = False  # whether an earlier try may have had its effect
        for pause in (1, 2, 4, 8, 16, None):
            request = urllib.request.Request(self.url + path, data, headers, method=method)
            status, answered, text = send(request)
            if status in (200, 201):
                return json.loads(text)
            if status == 404 and method == "DELETE":
                return {} if unknown else None
            if status == 400 and unknown and method == "POST":
                unknown = False  # the earlier try may have succeeded since: repeat once
            elif 400 <= status < 500 and status != 429:
                raise Refused(status, json.loads(text)["error"])
            elif status != 429:
                unknown = True
            if pause is not None:
                wait = int(answered.get("Retry-After", 0)) if status == 429 else pause
                self.sleep(wait + random.random())
        raise GaveUp(f"{method} {urllib.parse.urlsplit(path).path}: the last status was {status or 'none'}")


def send(request):
    """Returns status, headers and body. The status is 0 if there was no answer."""
    try:
        with urllib.request.urlopen(request, timeout=35) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers, refused.read()
    except (OSError, http.client.HTTPException):
        return 0, {}, b""
