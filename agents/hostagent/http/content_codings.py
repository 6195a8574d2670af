"""Decode content codings that the standard library knows: gzip and deflate."""

from __future__ import annotations

import zlib

from .messages import BODY_LIMIT

_GZIP = zlib.MAX_WBITS | 16


class DecodingError(Exception):
    """A body cannot be decoded; the message contains the reason."""


def decode_body(body: bytes, encoding: str) -> bytes:
    """Return the decoded body; DecodingError if that is not possible."""
    if encoding == "identity":
        return body
    try:
        if encoding in {"gzip", "x-gzip"}:
            return _decode_gzip(body)
        if encoding == "deflate":
            return _decode_deflate(body)
    except zlib.error as error:
        raise DecodingError(f"a body that is no {encoding}: {error}") from error
    raise DecodingError(
        f"a body in {encoding}, which is not decoded here: expect its length or sha256 instead"
    )


def _decode_gzip(body: bytes) -> bytes:
    """Return all members of the gzip file, joined."""
    whole = bytearray()
    while body:
        member = zlib.decompressobj(_GZIP)
        whole += _decompress(member, body, len(whole))
        body = member.unused_data
    return bytes(whole)


def _decode_deflate(body: bytes) -> bytes:
    """Decode a body with the zlib header of RFC 9110, or without it, as some servers send it."""
    try:
        return _decompress(zlib.decompressobj(), body, 0)
    except zlib.error:
        return _decompress(zlib.decompressobj(-zlib.MAX_WBITS), body, 0)


def _decompress(stream: zlib._Decompress, body: bytes, before: int) -> bytes:
    plain = stream.decompress(body, BODY_LIMIT - before + 1)
    if before + len(plain) > BODY_LIMIT:
        raise DecodingError(f"a body that is longer than {BODY_LIMIT >> 20} MiB when it is decoded")
    if not stream.eof:
        raise zlib.error("it ends too early")
    return plain
