"""Content codings undone, as far as the standard library can: gzip and deflate."""

from __future__ import annotations

import zlib

from .messages import BODY_LIMIT

_GZIP = zlib.MAX_WBITS | 16


class DecodingError(Exception):
    """The text says what of a body cannot be decoded, and why."""


def decode_body(body: bytes, encoding: str) -> bytes:
    """The body as it was before its coding; Undecodable where that cannot be had."""
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
    """All members; a file of several is one body."""
    whole = bytearray()
    while body:
        one = zlib.decompressobj(_GZIP)
        whole += _decompress(one, body, len(whole))
        body = one.unused_data
    return bytes(whole)


def _decode_deflate(body: bytes) -> bytes:
    """With the zlib header that RFC 9110 asks for, or bare, as some servers send it."""
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
