"""Identifiers and digests."""

import hashlib
import json
import secrets
import time
import uuid

#: The random bits of a UUID of version 7, and its fixed bits.
_RANDOM = (0xFFF << 64) | ((1 << 62) - 1)
_VERSION_7 = (0x7 << 76) | (0x2 << 62)


def new_id() -> uuid.UUID:
    """Return a UUID of version 7: unique and ordered by time, so that indexes stay compact."""
    return uuid.UUID(int=_build_time_bits() | secrets.randbits(80) & _RANDOM)


def new_ids(count: int) -> list[str]:
    """Return `count` UUIDs as 32 hexadecimal digits each, in ascending order.

    Rows that are stored under them go to the end of the index.
    """
    moment = _build_time_bits()
    noise = secrets.token_bytes(10 * count)
    return sorted(
        f"{moment | int.from_bytes(noise[at : at + 10]) & _RANDOM:032x}"
        for at in range(0, 10 * count, 10)
    )


def _build_time_bits() -> int:
    return time.time_ns() // 1_000_000 << 80 | _VERSION_7


def new_hex() -> str:
    """Return 256 random bits as 64 hexadecimal digits."""
    return secrets.token_hex(32)


def sha256_hex(content: bytes) -> str:
    """Return the SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def hash_value(value: object) -> str:
    """Return the SHA-256 of a JSON-able value in canonical form: equal values, equal digests."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256_hex(canonical.encode())
