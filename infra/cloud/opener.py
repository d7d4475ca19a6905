"""Opens sealed provider keys. It was written from the documentation of shared/seal only.

It uses no code of Signalbox: this shows that the documentation suffices for a
router in another language, which may copy this file. The caller names the place
at which it found the record, and the KMS keys that it trusts. The record
chooses neither.
"""

import dataclasses
import struct
from collections.abc import Callable, Collection

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

PURPOSE = "signalbox/credential"
FORMAT = 1
NONCE = 12  # bytes, like the next two
TAG = 16
DATA_KEY = 32


class Refused(Exception):
    """The record does not open. The text names the failed check."""


@dataclasses.dataclass(frozen=True)
class Place:
    """The identity to which a secret is bound."""

    account: str
    workspace: str
    credential: str
    provider: str

    def context(self) -> dict[str, str]:
        """The encryption context to which KMS binds the data key."""
        return {"purpose": PURPOSE, **dataclasses.asdict(self)}

    def associated_data(self, form: int) -> bytes:
        """The additional data of AES-GCM: six strings, each preceded by its length."""
        parts = [PURPOSE, str(form), *dataclasses.astuple(self)]
        return b"".join(struct.pack(">I", len(p.encode())) + p.encode() for p in parts)


@dataclasses.dataclass(frozen=True)
class Record:
    """A stored sealed secret."""

    format: int
    key_arn: str
    wrapped_key: bytes
    nonce: bytes
    ciphertext: bytes


# Decrypts a wrapped key under the KMS key of an ARN and an encryption context, or
# raises Refused if KMS refuses that context.
Decrypt = Callable[[str, bytes, dict[str, str]], bytes]


def open_record(record: Record, place: Place, trusted: Collection[str], decrypt: Decrypt) -> bytes:
    """Returns the secret of the record, or raises Refused."""
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
