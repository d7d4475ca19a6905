"""The single-machine edition, started for a test in a folder of its own."""

import json
import pathlib
import subprocess
import urllib.request

from aws import Service

ROOT = pathlib.Path(__file__).parents[2]


class Edition:
    """A running edition: the shipped functions on their engines."""

    def __init__(self, state: pathlib.Path, *parameters: str):
        self.state = state
        command = [ROOT / ".build/local", "-root", ROOT, "-state", state, "-port", "0"]
        for parameter in parameters:
            command += ["-param", parameter]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self._process.stdout:  # its banner ends with how to stop it
            if line.startswith("Stop:"):
                break
        else:
            raise RuntimeError("the edition did not start: run `make build engines` first")
        self.stack = json.loads((state / "stack.json").read_text())
        self.demo = json.loads((state / "demo.json").read_text())
        self.kms = Service("kms", self.stack)
        self._tables = Service("dynamodb", self.stack)

    def stop(self):
        self._process.terminate()
        self._process.communicate()

    def __enter__(self) -> "Edition":
        return self

    def __exit__(self, *_):
        self.stop()

    def create(self, **body) -> dict:
        """Creates a credential through the API."""
        request = urllib.request.Request(
            self.demo["base_url"] + "/byok",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.demo['management_key']}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)["data"]

    def item(self, workspace: str, credential: str) -> dict:
        """Reads a credential as it is stored."""
        return self._tables.call(
            "GetItem",
            TableName=self.stack["outputs"]["CredentialsTableName"],
            ConsistentRead=True,
            Key={"pk": {"S": f"workspace#{workspace}"}, "sk": {"S": f"credential#{credential}"}},
        )["Item"]

    def admin(self, *arguments: str):
        """Runs the operator's command."""
        subprocess.run(
            [ROOT / ".build/admin", "--local", self.state, *arguments],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
