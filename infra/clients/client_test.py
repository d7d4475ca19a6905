"""Calls a running local server with client.py, through a proxy that plays faults.
Standard input is the demo account's demo.json."""

import http.server
import json
import sys
import threading
import time
import unittest
import urllib.request
import uuid

from client import Client, GaveUp, Refused, send

DEMO = json.load(sys.stdin)
CREDENTIAL = {"provider": "openai", "key": "sk-example-0123456789abcdefAbCd"}
ANSWER = b'{"error":{"code":500,"message":"Internal Server Error","metadata":{"request_id":"x"}}}'


class Proxy(http.server.BaseHTTPRequestHandler):
    """Plays the next fault: "lost" and "500" after the request had its effect, "cut" before.
    Each status of the server is kept."""

    faults, statuses, replayed = [], [], []

    def do(self):
        fault = self.faults.pop(0) if self.faults else None
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if fault == "cut":
            return
        headers = {name: value for name, value in self.headers.items() if name not in ("Host", "Content-Length", "Connection")}
        status, answered, text = send(urllib.request.Request(DEMO["base_url"] + self.path, body or None, headers, method=self.command))
        self.statuses.append(status)
        self.replayed.append(answered.get("Idempotent-Replayed"))
        if fault == "lost":
            return
        self.send_response(500 if fault == "500" else status)
        if "Retry-After" in answered:
            self.send_header("Retry-After", answered["Retry-After"])
        self.end_headers()
        self.wfile.write(ANSWER if fault == "500" else text)

    do_GET = do_POST = do_DELETE = do

    def log_message(self, *_):
        pass


class TestClient(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.slept = []
        self.client = Client(f"http://127.0.0.1:{self.server.server_port}", DEMO["management_key"], self.slept.append)
        Proxy.faults, Proxy.statuses, Proxy.replayed = [], [], []
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def test_a_create_whose_fate_is_unknown_is_one_credential(self):
        Proxy.faults = ["lost", "500", "cut"]
        once = str(uuid.uuid4())
        created = self.client.create_byok_key(CREDENTIAL, once)
        self.assertEqual(created["label"], "sk-...AbCd")
        self.assertEqual((Proxy.statuses, Proxy.replayed), ([201] * 3, [None, "true", "true"]))
        for pause, slept in zip((1, 2, 4), self.slept, strict=True):
            self.assertTrue(pause <= slept < pause + 1, self.slept)
        self.assertEqual(self.client.create_byok_key(CREDENTIAL, once), created)

    def test_a_400_after_an_unknown_fate_is_repeated_once(self):
        for fault, tries in (("cut", 2), ("500", 3)):
            Proxy.faults, Proxy.statuses = [fault], []
            with self.assertRaises(Refused) as refused:
                self.client.create_byok_key(CREDENTIAL | {"provider": "nobody"}, str(uuid.uuid4()))
            self.assertEqual(refused.exception.metadata["issues"][0]["reason"], "invalid")
            self.assertEqual(Proxy.statuses, [400] * tries)

    def test_a_refusal_is_not_repeated(self):
        self.client.key = DEMO["api_key"]
        with self.assertRaises(Refused) as refused:
            self.client.get_sync_job(DEMO["sync_jobs"]["queued"])
        self.assertEqual((refused.exception.metadata["reason"], Proxy.statuses), ("management_key_required", [401]))

    def test_a_500_is_repeated_until_it_gives_up(self):
        Proxy.faults = ["500"]
        self.assertEqual(self.client.get_sync_job(DEMO["sync_jobs"]["queued"])["status"], "queued")
        Proxy.faults = ["500"] * 6
        self.assertRaises(GaveUp, self.client.get_sync_job, DEMO["sync_jobs"]["queued"])
        self.assertEqual((len(Proxy.statuses), len(self.slept)), (8, 6))

    def test_a_429_waits_for_retry_after(self):
        self.client.sleep = lambda seconds: (self.slept.append(seconds), time.sleep(seconds))
        while not self.slept:
            self.assertFalse(self.client.delete_file("file_unknown"))
        self.assertIn(429, Proxy.statuses)
        self.assertEqual(Proxy.statuses[-1], 404)
        self.assertGreaterEqual(self.slept[0], 1)


unittest.main()
