"""What the shipped functions store opens from the documentation alone.

A credential is created through the API of the single-machine edition, read from
its DynamoDB and opened with its KMS, both asked over plain signed HTTP; then
moved to another sealing key as operations.md says, and opened again.
"""

import base64
import dataclasses
import json
import pathlib
import tempfile
import unittest

from aws import Fault, Service, plain
from edition import Edition
from opener import Place, Record, Refused, open_record

SECRET = '{"type": "service_account", "private_key": "-----BEGIN\\n\u00e9"}'


class Router:
    """Opens credentials, as the platform's router would."""

    def __init__(self, edition: Edition, trusted: set[str]):
        self._edition, self._trusted = edition, trusted

    def read(self, place: Place) -> Record:
        stored = plain({"M": self._edition.item(place.workspace, place.credential)})
        assert stored["v"] == 1, "another layout"
        return Record(**stored["seal"])

    def open(self, place: Place, record: Record | None = None) -> str:
        return open_record(
            record or self.read(place), place, self._trusted, lambda *a: unwrap(self._edition.kms, *a)
        ).decode()


def unwrap(kms: Service, key: str, wrapped: bytes, context: dict[str, str]) -> bytes:
    try:
        answer = kms.call(
            "Decrypt", KeyId=key, EncryptionContext=context,
            CiphertextBlob=base64.b64encode(wrapped).decode(),
        )
    except Fault as fault:
        if str(fault) in ("InvalidCiphertextException", "IncorrectKeyException"):
            raise Refused("data key") from None
        raise  # not asked, disabled, gone: no judgement of the record
    return base64.b64decode(answer["Plaintext"])


class Stored(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = pathlib.Path(folder.name)

    def create(self, edition: Edition, key: str) -> Place:
        made = edition.create(provider="anthropic/2", key=key)
        return Place(edition.demo["account_id"], made["workspace_id"], made["id"], made["provider"])

    def test_it_opens_at_home_only(self):
        with Edition(self.state) as edition:
            router = Router(edition, {edition.stack["outputs"]["SealingKeyArn"]})
            home, other = self.create(edition, SECRET), self.create(edition, "sk-other")
            self.assertEqual(router.open(home), SECRET)
            self.assertNotIn("service_account", json.dumps(edition.item(home.workspace, home.credential)))

            record, stranger = router.read(home), router.read(other)
            for name, place, altered, check in (
                *((f"moved to another {field.name}", dataclasses.replace(home, **{field.name: "x"}), record, "data key")
                  for field in dataclasses.fields(Place)),
                ("moved to the other", other, record, "data key"),
                ("secret swapped", home, dataclasses.replace(record, nonce=stranger.nonce, ciphertext=stranger.ciphertext), "ciphertext"),
                ("wrapped key swapped", home, dataclasses.replace(record, wrapped_key=stranger.wrapped_key), "data key"),
                ("wrapped key cut", home, dataclasses.replace(record, wrapped_key=record.wrapped_key[:-1]), "data key"),
                ("secret cut", home, dataclasses.replace(record, ciphertext=record.ciphertext[:-1]), "ciphertext"),
                ("re-versioned", home, dataclasses.replace(record, format=2), "format"),
            ):
                with self.subTest(name), self.assertRaisesRegex(Refused, f"^{check}$"):
                    router.open(place, altered)

            with self.assertRaisesRegex(Refused, "^key$"):
                Router(edition, {"another"}).open(home)

    def test_a_disabled_key_is_a_fault(self):
        with Edition(self.state) as edition:
            key = edition.stack["outputs"]["SealingKeyArn"]
            home = self.create(edition, SECRET)
            edition.kms.call("DisableKey", KeyId=key)
            with self.assertRaisesRegex(Fault, "^DisabledException$"):
                Router(edition, {key}).open(home)

    def test_it_opens_after_it_was_moved_to_another_key(self):
        with Edition(self.state) as edition:
            first = edition.stack["outputs"]["SealingKeyArn"]
            following = edition.kms.call("CreateKey")["KeyMetadata"]["Arn"]
            old = self.create(edition, SECRET)
        with Edition(self.state, f"NextSealingKeyArn={following}") as edition:
            router = Router(edition, {first, following})
            new = self.create(edition, "sk-new")
            self.assertEqual([router.read(p).key_arn for p in (old, new)], [first, following])
            before = router.read(old)
            edition.admin("credentials", "rewrap", "--to", following)
            self.assertEqual([router.read(p).key_arn for p in (old, new)], [following, following])
            self.assertEqual([router.open(old), router.open(new)], [SECRET, "sk-new"])
            self.assertEqual(router.open(old, before), SECRET)  # an old backup, while its key is there
            edition.kms.call("DisableKey", KeyId=first)
            self.assertEqual(router.open(old), SECRET)


if __name__ == "__main__":
    unittest.main()
