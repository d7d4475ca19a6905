"""Opens sealed provider keys, written from the documentation of shared/seal alone.

Nothing of Signalbox's code is used: this shows that a router in another
language can be written from the package's document, and it is one that can be
copied. It opens a record for the place at which its reader found it, and
under a KMS key its reader trusts; it never takes the record's word for either.
"""

import dataclasses
import struct
from collections.abc import Callable, Collection

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

PURPOSE = "signalbox/credential"
FORMAT = 1
NONCE = 12  # bytes, as are the next two
TAG = 16
DATA_KEY = 32


class Refused(Exception):
    """The record does not open; the text names the check that failed."""


@dataclasses.dataclass(frozen=True)
class Place:
    """The identity that a secret is bound to."""

    account: str
    workspace: str
    credential: str
    provider: str

    def context(self) -> dict[str, str]:
        """The encryption context that KMS binds the data key to."""
        return {"purpose": PURPOSE, **dataclasses.asdict(self)}

    def associated_data(self, form: int) -> bytes:
        """The additional data of AES-GCM: six strings, each after its length."""
        parts = [PURPOSE, str(form), *dataclasses.astuple(self)]
        return b"".join(struct.pack(">I", len(p.encode())) + p.encode() for p in parts)


@dataclasses.dataclass(frozen=True)
class Record:
    """A sealed secret, as it is stored."""

    format: int
    key_arn: str
    wrapped_key: bytes
    nonce: bytes
    ciphertext: bytes


# Decrypts a wrapped key under the KMS key of an ARN and an encryption context, or
# raises Refused where KMS refuses that context.
Decrypt = Callable[[str, bytes, dict[str, str]], bytes]


def open_record(record: Record, place: Place, trusted: Collection[str], decrypt: Decrypt) -> bytes:
    """The secret of the record, or Refused."""
    if record.format != FORMAT:
        raise Refused("format")
    if len(record.nonce) != NONCE or len(record.ciphertext) < TAG or not record.wrapped_key:
        raise Refused("shape")
    if record.key_arn not in trusted:
        raise Refused("key")
    data_key = decrypt(record.key_arn, record.wrapped_key, place.context())
    if len(data_key) != DATA_KEY:
        raise Refused("data key")
    try:
        return AESGCM(data_key).decrypt(
            record.nonce, record.ciphertext, place.associated_data(record.format)
        )
    except InvalidTag:
        raise Refused("ciphertext") from None
