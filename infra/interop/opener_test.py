"""opener.py opens the frozen vectors of shared/seal and one credential that the
single-machine edition has stored, each for its own binding and no other."""

import base64
import dataclasses
import json
import pathlib
import subprocess
import tempfile
import unittest
import urllib.request

import boto3
from opener import Place, Record, Refused, open_record

ROOT = pathlib.Path(__file__).parents[2]


class Vectors(unittest.TestCase):
    """KMS is not asked: each vector contains its data key."""

    def test_open_for_their_own_binding_only(self):
        vectors = json.loads((ROOT / "shared/seal/testdata/vectors.json").read_text())
        self.assertGreater(len(vectors), 0)
        for v in vectors:
            raw = {name: base64.b64decode(v[name]) for name in ("DataKey", "WrappedKey", "Nonce", "Ciphertext", "Plaintext")}
            place = Place(v["Account"], v["Workspace"], v["Credential"], v["Provider"])
            record = Record(v["Format"], v["KeyARN"], raw["WrappedKey"], raw["Nonce"], raw["Ciphertext"])

            def opened(place: Place) -> bytes:
                return open_record(record, place, {record.key_arn}, lambda *_: raw["DataKey"])

            self.assertEqual(opened(place), raw["Plaintext"])
            for field in dataclasses.fields(Place):
                with self.subTest(field.name), self.assertRaisesRegex(Refused, "^ciphertext$"):
                    opened(dataclasses.replace(place, **{field.name: "x"}))


class LiveRecord(unittest.TestCase):
    """One credential, created through the API and read with AWS's own SDK."""

    def test_opens_for_its_own_binding_only(self):
        secret = '{"type": "service_account", "private_key": "-----BEGIN\\n\u00e9"}'
        with tempfile.TemporaryDirectory() as folder, Edition(pathlib.Path(folder)) as edition:
            place, record = edition.create(secret)
            trusted = {edition.stack["outputs"]["SealingKeyArn"]}
            self.assertEqual(open_record(record, place, trusted, edition.unwrap).decode(), secret)
            for field in dataclasses.fields(Place):
                moved = dataclasses.replace(place, **{field.name: "x"})
                with self.subTest(field.name), self.assertRaisesRegex(Refused, "^data key$"):
                    open_record(record, moved, trusted, edition.unwrap)


class Edition:
    """A running edition and AWS clients for its engines."""

    def __init__(self, state: pathlib.Path):
        self._state = state

    def __enter__(self) -> "Edition":
        command = [ROOT / ".build/local", "-root", ROOT, "-state", self._state, "-port", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self._process.stdout:  # the banner ends with how to stop it
            if line.startswith("Stop:"):
                break
        else:
            raise RuntimeError("the edition did not start: run `make build engines` first")
        self.stack, self._demo = (json.loads((self._state / name).read_text()) for name in ("stack.json", "demo.json"))
        session = boto3.Session(self.stack["access_key_id"], self.stack["secret_access_key"], region_name=self.stack["region"])
        self._dynamodb, self._kms = (
            session.client(name, endpoint_url=self.stack["endpoints"][name]) for name in ("dynamodb", "kms")
        )
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.communicate()

    def create(self, key: str) -> tuple[Place, Record]:
        """Creates a credential through the API and reads the stored rows."""
        request = urllib.request.Request(
            self._demo["base_url"] + "/byok",
            json.dumps({"provider": "anthropic/2", "key": key}).encode(),
            {"Authorization": f"Bearer {self._demo['management_key']}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            made = json.load(answer)["data"]
        seal = self._dynamodb.get_item(
            TableName=self.stack["outputs"]["CredentialsTableName"],
            ConsistentRead=True,
            Key={"pk": {"S": f"workspace#{made['workspace_id']}"}, "sk": {"S": f"credential#{made['id']}"}},
        )["Item"]["seal"]["M"]
        place = Place(self._demo["account_id"], made["workspace_id"], made["id"], made["provider"])
        return place, Record(
            int(seal["format"]["N"]), seal["key_arn"]["S"], seal["wrapped_key"]["B"], seal["nonce"]["B"], seal["ciphertext"]["B"]
        )

    def unwrap(self, key: str, wrapped: bytes, context: dict[str, str]) -> bytes:
        try:
            return self._kms.decrypt(KeyId=key, CiphertextBlob=wrapped, EncryptionContext=context)["Plaintext"]
        except self._kms.exceptions.InvalidCiphertextException:
            raise Refused("data key") from None


if __name__ == "__main__":
    unittest.main()
