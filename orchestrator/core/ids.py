"""Identifiers and digests."""

import hashlib
import json
import secrets
import time
import uuid

#: The random bits of a UUID of version 7, and what stands in place of the others.
_RANDOM = (0xFFF << 64) | ((1 << 62) - 1)
_VERSION_7 = (0x7 << 76) | (0x2 << 62)


def new_id() -> uuid.UUID:
    """A UUID of version 7: unique, and in the order of time, so that indexes stay compact."""
    return uuid.UUID(int=_moment() | secrets.randbits(80) & _RANDOM)


def new_ids(count: int) -> list[str]:
    """So many of them at once, each as 32 hexadecimal digits, in ascending order: whatever is
    stored by them goes to the end of its index."""
    moment = _moment()
    noise = secrets.token_bytes(10 * count)
    return sorted(
        f"{moment | int.from_bytes(noise[at : at + 10]) & _RANDOM:032x}"
        for at in range(0, 10 * count, 10)
    )


def _moment() -> int:
    return time.time_ns() // 1_000_000 << 80 | _VERSION_7


def new_hex() -> str:
    """256 random bits as 64 hexadecimal digits."""
    return secrets.token_hex(32)


def sha256_hex(content: bytes) -> str:
    """SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digest_of(value: object) -> str:
    """SHA-256 of a JSON-able value in canonical form: equal values, equal digests."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256_hex(canonical.encode())
