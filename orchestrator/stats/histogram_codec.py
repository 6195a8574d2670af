"""HdrHistogram's V2 wire format: big-endian header, zigzag LEB128 counts, compressed by zlib.

Layout after https://github.com/HdrHistogram/HdrHistogram (V2CompressedEncoding). A run of zero
counts is written once, as its negated length. All data are raw bytes; other programs wrap them in
base64.
"""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_COUNTS_COOKIE = 0x1C849303 | 0x10
_COMPRESSED_COOKIE = 0x1C849304 | 0x10
_OUTER = struct.Struct(">ii")
#: cookie, payload length, normalising offset, digits, lowest, highest, conversion ratio
_INNER = struct.Struct(">iiiiqqd")
_MAX_LEB128_BYTES = 8

Int64Array = NDArray[np.int64]


def encode_counts(
    index: Int64Array, count: Int64Array, *, lowest: int, highest: int, digits: int
) -> bytes:
    """Encode a histogram from its non-zero counters (`index` ascending, `count` > 0)."""
    payload = _encode_leb128(_encode_zigzag(_insert_zero_runs(index, count)))
    header = _INNER.pack(_COUNTS_COOKIE, len(payload), 0, digits, lowest, highest, 1.0)
    packed = zlib.compress(header + payload)
    return _OUTER.pack(_COMPRESSED_COOKIE, len(packed)) + packed


def decode_counts(
    data: bytes, *, lowest: int, highest: int, digits: int, slots: int
) -> tuple[Int64Array, Int64Array]:
    """Decode the non-zero counters (index, count) of bytes by `encode_counts` or HdrHistogram.

    Raises ValueError with the fault of the bytes; a different range or precision is also a fault.
    """
    body = _decompress(data, limit=_INNER.size + slots * _MAX_LEB128_BYTES)
    if len(body) < _INNER.size:
        raise ValueError("not a histogram: its header is cut short")
    cookie, length, offset, *shape, ratio = _INNER.unpack_from(body)
    if cookie != _COUNTS_COOKIE:
        raise ValueError(f"not a V2 histogram: unknown counts cookie {cookie:#x}")
    if (*shape, offset, ratio) != (digits, lowest, highest, 0, 1.0):
        raise ValueError(
            f"a histogram of another shape: {shape[0]} digits, {shape[1]} to {shape[2]}, offset "
            f"{offset}, ratio {ratio}; expected {digits} digits, {lowest} to {highest}, 0, 1.0"
        )
    payload = body[_INNER.size :]
    if len(payload) != length:
        raise ValueError(f"a damaged histogram: {len(payload)} bytes of counts, expected {length}")
    return _remove_zero_runs(_decode_leb128(payload), slots)


def _decompress(data: bytes, *, limit: int) -> bytes:
    if len(data) < _OUTER.size:
        raise ValueError(f"not a histogram: only {len(data)} bytes")
    cookie, length = _OUTER.unpack_from(data)
    if cookie != _COMPRESSED_COOKIE:
        raise ValueError(f"not a compressed V2 histogram: unknown cookie {cookie & 0xFFFFFFFF:#x}")
    packed = data[_OUTER.size :]
    if len(packed) != length:
        raise ValueError(f"a damaged histogram: {len(packed)} packed bytes, expected {length}")
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(packed, limit)
    except zlib.error as error:
        raise ValueError(f"a damaged histogram: {error}") from error
    if not inflater.eof:
        raise ValueError("a damaged histogram: its packed part is cut short or too large")
    return body


def _insert_zero_runs(index: Int64Array, count: Int64Array) -> Int64Array:
    gaps = np.diff(index, prepend=-1) - 1
    # A single zero is written as itself, as in the reference implementation.
    both = np.column_stack((np.where(gaps == 1, 0, -gaps), count)).ravel()
    keep = np.column_stack((gaps > 0, np.ones_like(count, dtype=bool))).ravel()
    written: Int64Array = both[keep]
    return written


def _remove_zero_runs(values: Int64Array, slots: int) -> tuple[Int64Array, Int64Array]:
    if values.size and values.min() < -slots:
        raise ValueError("a damaged histogram: a run of zeros longer than the histogram")
    width = np.where(values < 0, -values, 1)
    position = np.cumsum(width) - width
    filled = values > 0
    index = position[filled]
    if index.size and index[-1] >= slots:
        raise ValueError("a damaged histogram: more counters than its range has")
    return index, values[filled]


def _encode_zigzag(values: Int64Array) -> NDArray[np.uint64]:
    return ((values << 1) ^ (values >> 63)).astype(np.uint64)


def _encode_leb128(values: NDArray[np.uint64]) -> bytes:
    shifts = np.arange(_MAX_LEB128_BYTES, dtype=np.uint64) * np.uint64(7)
    rest = values[:, None] >> shifts
    used = rest > 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    septets = (rest & np.uint64(0x7F)) | (more.astype(np.uint64) << np.uint64(7))
    return septets[used].astype(np.uint8).tobytes()


def _decode_leb128(payload: bytes) -> Int64Array:
    octets = np.frombuffer(payload, dtype=np.uint8)
    if not octets.size:
        return np.empty(0, dtype=np.int64)
    last = np.flatnonzero(octets < 0x80)
    if not last.size or last[-1] != octets.size - 1:
        raise ValueError("a damaged histogram: its last count is cut short")
    start = np.concatenate(([0], last[:-1] + 1))
    length = last - start + 1
    if length.max() > _MAX_LEB128_BYTES:
        raise ValueError("a damaged histogram: a count of 2^55 or more")
    place = np.arange(octets.size) - np.repeat(start, length)
    septets = (octets & 0x7F).astype(np.int64) << (7 * place)
    zigzag = np.add.reduceat(septets, start)
    return (zigzag >> 1) ^ -(zigzag & 1)
