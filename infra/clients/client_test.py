"""Calls a running local server with client.py, with faults, and a server that is not ours.
Standard input is the demo account's demo.json."""

import json
import os
import pickle
import socketserver
import ssl
import sys
import threading
import time
import traceback
import unittest
import unittest.mock
import urllib.error
import uuid

import client
from client import Client, GaveUp, Refused, send

DEMO = json.load(sys.stdin)
CREDENTIAL = {"provider": "openai", "key": "sk-example-0123456789abcdefAbCd"}


class TestClient(unittest.TestCase):
    """The real server answers."""

    def setUp(self):
        self.slept, self.faults, self.statuses, self.replayed = [], [], [], []
        self.client = Client(DEMO["base_url"], DEMO["management_key"], self.slept.append)
        patch = unittest.mock.patch.object(client, "send", self.send)
        patch.start()
        self.addCleanup(patch.stop)

    def send(self, request):
        """Plays the next fault: "lost" and "500" after the request had its effect, "cut" before."""
        fault = self.faults.pop(0) if self.faults else None
        if fault == "cut":
            raise ConnectionResetError
        status, headers, text = send(request)
        self.statuses.append(status)
        self.replayed.append(headers.get("Idempotent-Replayed"))
        if fault == "lost":
            raise ConnectionResetError
        return (500, {}, error(500)) if fault == "500" else (status, headers, text)

    def test_a_create_whose_fate_is_unknown_is_one_credential(self):
        self.faults = ["lost", "500", "cut"]
        once = str(uuid.uuid4())
        created = self.client.create_byok_key(CREDENTIAL, once)
        self.assertEqual(created["label"], "sk-...AbCd")
        self.assertEqual((self.statuses, self.replayed), ([201] * 3, [None, "true", "true"]))
        for pause, slept in zip((1, 2, 4), self.slept, strict=True):
            self.assertTrue(pause <= slept < pause + 1, self.slept)
        self.assertEqual(self.client.create_byok_key(CREDENTIAL, once), created)

    def test_a_refusal_is_not_repeated(self):
        self.client.key = DEMO["api_key"]
        with self.assertRaises(Refused) as refused:
            self.client.get_sync_job(DEMO["sync_jobs"]["queued"])
        self.assertEqual((refused.exception.metadata["reason"], self.statuses), ("management_key_required", [401]))

    def test_a_429_waits_for_retry_after(self):
        self.client.sleep = lambda seconds: (self.slept.append(seconds), time.sleep(seconds))
        while not self.slept:
            self.assertFalse(self.client.delete_file("file_unknown"))
        self.assertIn(429, self.statuses)
        self.assertEqual(self.statuses[-1], 404)
        self.assertGreaterEqual(self.slept[0], 1)


FILE, JOB, KEY = "file_a", str(uuid.uuid4()), "sbx_" + "mark" * 10 + "mar"
CALLS = {
    "GET": lambda api: api.get_sync_job(JOB),
    "POST": lambda api: api.create_byok_key(CREDENTIAL, "once"),
    "DELETE": lambda api: api.delete_file(FILE),
}


def raw(status, body=b"", *headers, length=None):
    """Returns the bytes of an answer. Its Content-Length may be wrong."""
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def error(status, **metadata):
    return json.dumps({"error": {"code": status, "message": "x", "metadata": metadata}}).encode()


DELETED = raw(200, json.dumps({"id": FILE, "type": "file_deleted"}).encode())
HTML = b"<html>Sign in</html>"
# What a server that is not ours, or a network, answers, to the last try again and again; which calls; what they end in; after how many tries.
HOSTILE = [
    *((raw(status, HTML), CALLS, GaveUp, 1) for status in (200, 201, 204, 302, 400, 401, 403, 404, 407, 413)),
    *((raw(status, HTML), CALLS, GaveUp, 6) for status in (429, 500, 502, 503)),
    *((raw(status, error(status), length=999), CALLS, GaveUp, 6) for status in (200, 201, 401, 404, 429, 500)),
    *((raw(403, body), CALLS, GaveUp, 1) for body in (b'{"message":"Forbidden"}', b"", b"[]", b'{"error":"no"}', b"[" * 99999, b"\xff\xfe", error(401))),
    (raw(404, error(404), "x-amzn-ErrorType: MissingAuthenticationTokenException"), CALLS, GaveUp, 1),
    (raw(404, error(404)), {"DELETE"}, False, 1),
    (raw(404, error(404)), {"GET"}, Refused, 1),
    (raw(401, b'{"error":{"code":401,"message":"x","metadata":null}}'), CALLS, Refused, 1),
    *((raw(status, b"{}", "Location: {self}/stolen"), CALLS, GaveUp, 1) for status in (301, 302, 303, 307, 308)),
    (raw(200, b"{}"), CALLS, GaveUp, 1),
    (raw(200, b'{"data":{}}'), CALLS, GaveUp, 1),
    (b"", CALLS, GaveUp, 6),
    (b"SSH-2.0-x\r\n", CALLS, GaveUp, 6),
    (raw(500) + DELETED, {"DELETE"}, GaveUp, 6),
    *((raw(status, error(status)), CALLS, GaveUp, 1) for status in (200, 201, 302)),
    (raw(200, json.dumps({"data": {"id": str(uuid.uuid4())}}).encode()), {"GET"}, GaveUp, 1),
    (DELETED.replace(b"file_a", b"file_b"), {"DELETE"}, GaveUp, 1),
    (raw(201, b'{"data":{"id":null}}'), {"POST"}, GaveUp, 1),
    (b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc", CALLS, GaveUp, 6),
    (raw(401, error(401, reason=f"Bearer {KEY}")), CALLS, GaveUp, 1),
    (raw(400, error(400, issues=[CREDENTIAL])), {"POST"}, GaveUp, 1),
    (f"Bearer {KEY}\r\n".encode(), CALLS, GaveUp, 6),
    (raw(401, b'{"error":{"code":401,"message":"\\u001b[2J","metadata":["no"]}}'), CALLS, Refused, 1),
    # An earlier try may have had its effect: a 400 is repeated once, another refusal is no certainty. A read has no effect.
    ([b"", raw(400, error(400))], {"POST"}, Refused, 3),
    ([raw(500, error(500)), raw(400, error(400))], {"POST"}, Refused, 3),
    ([raw(429, HTML), raw(400, error(400))], {"POST"}, Refused, 3),
    ([raw(429, error(429)), raw(400, error(400))], {"POST"}, Refused, 2),
    ([b"", raw(401, error(401, reason="disabled"))], {"POST", "DELETE"}, GaveUp, 2),
    ([b"", raw(400, error(400)), raw(401, error(401, reason="disabled"))], {"POST"}, GaveUp, 3),
    ([b"", raw(404, error(404))], {"GET"}, Refused, 2),
    ([b"", raw(404, error(404))], {"DELETE"}, True, 2),
]


class TestHostile(unittest.TestCase):
    """Another server answers than ours."""

    def setUp(self):
        test = self

        class Server(socketserver.StreamRequestHandler):
            def handle(self):
                first, size = self.rfile.readline(), 0
                test.asked.append(first.split()[1].decode())
                while (line := self.rfile.readline().strip()):
                    size = int(line.split()[1]) if line.lower().startswith(b"content-length:") else size
                self.rfile.read(size)
                answer = test.answers[min(len(test.asked), len(test.answers)) - 1]
                self.wfile.write(answer.replace(b"{self}", test.url.encode()))

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.asked, self.slept, self.answers = [], [], [b""]
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/api/v1"
        self.api = Client(self.url + "/", KEY, self.slept.append)

    def test_an_answer_that_is_not_ours(self):
        for answer, methods, end, tries in HOSTILE:
            for method in methods:
                with self.subTest(answer=str(answer)[:120], method=method):
                    self.asked.clear()
                    self.answers = answer if isinstance(answer, list) else [answer]
                    if isinstance(end, bool):
                        self.assertIs(CALLS[method](self.api), end)
                    else:
                        with self.assertRaises(end) as ended:
                            CALLS[method](self.api)
                        pickle.loads(pickle.dumps(ended.exception))
                        shown = "".join(traceback.format_exception(ended.exception))
                        self.assertFalse(any(text in shown for text in (KEY, CREDENTIAL["key"], "\x1b")), shown)
                    self.assertEqual(len(self.asked), tries, self.asked)
                    self.assertFalse(any("stolen" in path for path in self.asked))

    def test_a_retry_after_that_is_no_number(self):
        for after, least, most in (("Thu, 01 Jan 2099 00:00:00 GMT", 1, 2), ("1.5", 1, 2), ("", 1, 2), ("-1", 1, 2), ("9" * 9, 60, 61), ("9" * 5000, 1, 2), ("7", 7, 8)):
            self.asked.clear()
            self.slept.clear()
            self.answers = [raw(429, error(429), f"Retry-After: {after}"), DELETED]
            self.assertTrue(self.api.delete_file(FILE))
            self.assertTrue(least <= self.slept[0] < most, (after, self.slept))

    def test_http_uses_no_proxy(self):
        self.answers = [DELETED]
        with unittest.mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:1"}):
            self.assertTrue(self.api.delete_file(FILE))

    def test_arguments_that_are_no_texts(self):
        self.answers = [raw(401, error(401))]
        self.assertRaises(Refused, self.api.create_byok_key, CREDENTIAL, uuid.uuid4())
        self.assertRaises(Refused, self.api.get_sync_job, uuid.UUID(JOB))
        self.assertEqual(self.asked, ["/api/v1/byok", f"/api/v1/scim/sync-jobs/{JOB}"])
        deep = []
        for _ in range(100000):
            deep = [deep]
        for wrong in (float("nan"), b"sk", {(1,): 1}, deep):
            self.assertRaises(ValueError, self.api.create_byok_key, {"key": wrong}, "once")
        self.assertRaises(ValueError, self.api.create_byok_key, CREDENTIAL, b"once")
        self.assertRaises(ValueError, self.api.delete_file, b"file_a")
        self.assertEqual(len(self.asked), 2)

    def test_arguments(self):
        for wrong in ("file_a?workspace_id=W", "../../byok", "a b", "a#b", "a/b", "a%2fb", "", "file_a\n", "\u0661"):
            for call in (self.api.get_sync_job, self.api.delete_file, lambda workspace: self.api.delete_file(FILE, workspace)):
                self.assertRaises(ValueError, call, wrong)
        self.assertRaises(ValueError, self.api.delete_file, None)
        self.assertRaises(ValueError, self.api.create_byok_key, CREDENTIAL, None)
        for url in ("http://example.com/api/v1", "example.com/api/v1", "ftp://example.com/api/v1", "http://localhost:1@example.com/", "https://", "https://user:password@example.com", "https://example.com\n", "https://example.com:x", "https://example.com/?a=", None, b"https://example.com"):
            self.assertRaises(ValueError, Client, url, "key")
        for secret in ("xmarx\n", "", "xmar x", "xmar\u00e9"):
            self.api.key = secret
            with self.assertRaises(ValueError) as refused:
                self.api.get_sync_job(JOB)
            self.assertNotIn("mar", str(refused.exception))
        self.assertEqual(self.asked, [])

    def test_no_answer_names_its_cause(self):
        wrong = urllib.error.URLError(ssl.SSLCertVerificationError("self-signed"))
        for cause, tries in ((wrong, 1), (urllib.error.URLError(ConnectionRefusedError("refused")), 6)):
            with unittest.mock.patch.object(client, "send", side_effect=cause) as sent, self.assertRaises(GaveUp) as gave_up:
                CALLS["GET"](self.api)
            self.assertEqual((sent.call_count, gave_up.exception.__cause__), (tries, cause))
            self.assertIn(str(cause), str(gave_up.exception))


unittest.main()
