"""infra/cloud/opener.py opens the frozen vectors of shared/seal, each for its own binding and no other.

This needs no KMS, because each vector contains its data key. The check `sealing` of infra/cloud
opens a credential that the API has stored.
"""

import base64
import dataclasses
import json
import pathlib
import unittest

from opener import Place, Record, Refused, open_record

ROOT = pathlib.Path(__file__).parents[3]


class Vectors(unittest.TestCase):
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


if __name__ == "__main__":
    unittest.main()
