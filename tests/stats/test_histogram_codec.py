"""Bytes that are well packed but lie about what is in them."""

import struct
import zlib

import pytest

from orchestrator.stats.histogram import Histogram


def packed(counts: bytes, *, length: int | None = None) -> bytes:
    size = len(counts) if length is None else length
    body = struct.pack(">iiiiqqd", 0x1C849313, size, 0, 3, 1, 3_600_000_000, 1.0)
    squeezed = zlib.compress(body + counts)
    return struct.pack(">ii", 0x1C849314, len(squeezed)) + squeezed


def test_codec_decodes_counts_and_runs_of_zeros():
    # zigzag: 6 is three, 3 is a run of two zeros, 0 a single zero, 0x80 0x02 is 128
    histogram = Histogram.decode(packed(bytes([6, 3, 2, 0, 0x80, 0x02])))
    assert histogram == Histogram.from_counts([0, 3, 5], [3, 1, 128])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(packed(b"\x80"), "last count is cut short", id="open count"),
        pytest.param(packed(b"\x80" * 9 + b"\x01"), "2\\^55", id="count too long"),
        pytest.param(packed(b"\xff\xff\xff\x7f\x02"), "run of zeros", id="run too long"),
        pytest.param(packed(b"\x02" * 23_553), "more counters", id="too many counters"),
        pytest.param(packed(b"\x02", length=2), "expected 2", id="wrong length"),
        pytest.param(packed(b"\x00" * 400_000), "too large", id="bomb"),
    ],
)
def test_codec_reports_errors(data, message):
    with pytest.raises(ValueError, match=message):
        Histogram.decode(data)


@pytest.mark.parametrize("count", [1, 63, 64, 8_191, 8_192, 2**40, 2**52])
def test_codec_keeps_large_counts(count):
    histogram = Histogram.from_counts([17], [count])
    assert Histogram.decode(histogram.encode()).total_count == count
