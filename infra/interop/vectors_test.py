"""The frozen vectors of shared/seal open, and nothing that was done to them does.

KMS is not asked: each vector says what it would make of the wrapped key. So
these tests show what the data that stand beside the secret bind by themselves.
"""

import base64
import dataclasses
import json
import pathlib
import unittest

from opener import Place, Record, Refused, open_record

VECTORS = pathlib.Path(__file__).parents[2] / "shared/seal/testdata/vectors.json"


@dataclasses.dataclass
class Vector:
    place: Place
    record: Record
    data_key: bytes
    plaintext: bytes

    def open(self, record: Record | None = None, place: Place | None = None) -> bytes:
        """Opens it, or what was made of it, with a KMS that believes everything."""
        return open_record(
            record or self.record,
            place or self.place,
            {self.record.key_arn},
            lambda _arn, _wrapped, _context: self.data_key,
        )


def vectors() -> list[Vector]:
    def read(v: dict) -> Vector:
        raw = {name: base64.b64decode(v[name]) for name in
               ("DataKey", "WrappedKey", "Nonce", "Ciphertext", "Plaintext")}
        return Vector(
            place=Place(v["Account"], v["Workspace"], v["Credential"], v["Provider"]),
            record=Record(v["Format"], v["KeyARN"], raw["WrappedKey"], raw["Nonce"], raw["Ciphertext"]),
            data_key=raw["DataKey"],
            plaintext=raw["Plaintext"],
        )

    return [read(v) for v in json.loads(VECTORS.read_text())]


def flipped(data: bytes, index: int) -> bytes:
    changed = bytearray(data)
    changed[index] ^= 1
    return bytes(changed)


class Vectors(unittest.TestCase):
    def test_they_open(self):
        self.assertGreater(len(vectors()), 0)
        for vector in vectors():
            self.assertEqual(vector.open(), vector.plaintext)

    def test_moved_they_do_not(self):
        for vector in vectors():
            for field in dataclasses.fields(Place):
                with self.subTest(field.name), self.assertRaisesRegex(Refused, "^ciphertext$"):
                    vector.open(place=dataclasses.replace(vector.place, **{field.name: "x"}))

    def test_what_runs_together_is_kept_apart(self):
        vector = vectors()[0]
        place = dataclasses.replace(
            vector.place,
            account=vector.place.account + vector.place.workspace[0],
            workspace=vector.place.workspace[1:],
        )
        with self.assertRaisesRegex(Refused, "^ciphertext$"):
            vector.open(place=place)

    def test_altered_they_do_not(self):
        for vector in vectors():
            record = vector.record
            for name, changes, check in (
                ("nonce altered", {"nonce": flipped(record.nonce, 0)}, "ciphertext"),
                ("nonce cut", {"nonce": record.nonce[:-1]}, "shape"),
                ("secret altered", {"ciphertext": flipped(record.ciphertext, 0)}, "ciphertext"),
                ("tag altered", {"ciphertext": flipped(record.ciphertext, -1)}, "ciphertext"),
                ("end cut", {"ciphertext": record.ciphertext[:-1]}, "ciphertext|shape"),
                ("beginning cut", {"ciphertext": record.ciphertext[1:]}, "ciphertext|shape"),
                ("only a tag", {"ciphertext": record.ciphertext[-16:]}, "ciphertext"),
                ("nothing", {"ciphertext": b""}, "shape"),
                ("re-versioned", {"format": 2}, "format"),
                ("another key", {"key_arn": record.key_arn + "0"}, "key"),
                ("no wrapped key", {"wrapped_key": b""}, "shape"),
            ):
                with self.subTest(name), self.assertRaisesRegex(Refused, f"^({check})$"):
                    vector.open(dataclasses.replace(record, **changes))

    def test_the_format_is_bound(self):
        """A reader that knew a format 2 could not be given a record of format 1 as one."""
        place = vectors()[0].place
        self.assertNotEqual(place.associated_data(1), place.associated_data(2))

    def test_swapped_they_do_not(self):
        one, other, *_ = vectors()
        for name, changes in (
            ("ciphertext", {"ciphertext": other.record.ciphertext}),
            ("nonce", {"nonce": other.record.nonce}),
            ("both", {"nonce": other.record.nonce, "ciphertext": other.record.ciphertext}),
        ):
            with self.subTest(name), self.assertRaisesRegex(Refused, "^ciphertext$"):
                one.open(dataclasses.replace(one.record, **changes))


if __name__ == "__main__":
    unittest.main()
