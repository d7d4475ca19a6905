"""Runs README.md's blocks for curl and Python as they stand, through a server with faults.
The arguments are the blocks, the environment is demo.env's."""

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

CURL, PYTHON = sys.argv[1:]
KEY, REAL = os.environ["MANAGEMENT_KEY"], os.environ["URL"]
PASSED, LOST = "the real server's answer", "the real server's answer, lost on the way"
# The Python block sleeps no real second, and prints how long it would.
WITHOUT_SLEEP = "import sys, time; time.sleep = lambda seconds: print('slept', seconds); exec(sys.argv[1])"


def answer(status, *headers, body=b"{}", length=None):
    lines = [f"HTTP/1.1 {status} x", "Connection: close", f"Content-Length: {length or len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Server(http.server.ThreadingHTTPServer):
    """Gives the next of its answers to each request, the last one again and again."""

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked, self.stored = list(answers), 0, []
        self.url = f"http://127.0.0.1:{self.server_port}/api/v1"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        given = self.server.answers[min(self.server.asked, len(self.server.answers) - 1)]
        self.server.asked += 1
        if given in (PASSED, LOST):
            with urllib.request.urlopen(urllib.request.Request(f"{REAL}/byok", body, dict(self.headers))) as real:
                text = real.read()
            self.server.stored.append(json.loads(text)["data"]["id"])
            given = answer(201, body=text) if given == PASSED else b""
        self.wfile.write(given)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Faults:
    def run_block(self, *answers):
        """Returns whether the block ended well, its server and its output."""
        server = Server(*answers)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(self.command, cwd=folder, env=os.environ | {"URL": server.url}, capture_output=True, text=True, timeout=60)
        self.assertNotIn(KEY, done.stdout + done.stderr)
        return self.ended_well(done), server, done.stdout + done.stderr

    def test_lost_and_cut_answers_make_one_credential(self):
        well, server, said = self.run_block(LOST, answer(500), answer(201, length=999), PASSED)
        self.assertTrue(well, said)
        self.assertEqual((server.asked, len(server.stored), len(set(server.stored))), (4, 2, 1))

    def test_no_other_host_gets_a_key(self):
        other = Server(PASSED)
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        well, server, said = self.run_block(answer(307, f"Location: {other.url}/byok"))
        self.assertEqual((well, server.asked, other.asked), (False, 1, 0), said)

    def test_a_refusal_is_not_repeated_and_its_text_not_shown(self):
        text = json.dumps({"error": {"code": 401, "message": f"Bearer {KEY}"}}).encode()
        well, server, said = self.run_block(answer(401, "X-Request-Id: 9f0", body=text))
        self.assertEqual((well, server.asked, said.splitlines()[-1]), (False, 1, self.refusal))

    def test_an_absurd_retry_after(self):
        well, server, said = self.run_block(answer(429, "Retry-After: 999999"))
        self.assertEqual((well, server.asked, said.count("slept 60\n")), (False, *self.after_429), said)


class TestCurl(Faults, unittest.TestCase):
    command, refusal, after_429 = ["bash", "-ec", CURL], "401", (1, 0)

    def ended_well(self, done):
        return done.stdout == "201\n"


class TestPython(Faults, unittest.TestCase):
    command, refusal, after_429 = [sys.executable, "-c", WITHOUT_SLEEP, PYTHON], "RuntimeError: 401, request 9f0", (6, 5)

    def ended_well(self, done):
        return done.returncode == 0

    def test_a_server_that_is_not_http(self):
        well, server, said = self.run_block(f"Bearer {KEY}\r\n".encode())
        self.assertEqual((well, server.asked, said.splitlines()[-1]), (False, 6, "RuntimeError: MaxRetryError"))


unittest.main(argv=sys.argv[:1])
