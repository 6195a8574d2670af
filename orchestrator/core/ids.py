"""Identifiers and digests."""

import hashlib
import json
import secrets
import time
import uuid


def new_id() -> uuid.UUID:
    """A UUID of version 7: unique, and in the order of time, so that indexes stay compact."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | secrets.randbits(80)
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return uuid.UUID(int=value)


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
