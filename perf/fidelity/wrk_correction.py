"""Add the latencies that wrk adds to its own results.

wrk adds a latency for each mean interval of a connection that a slow answer lasted (`stats_correct`
of src/stats.c, 4.1.0), and prints percentiles of all. Pitwall removes the added ones, so its values
differ from wrk's on purpose. For a fair comparison they are added again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perf.fidelity.tool_output import Figures


def as_wrk_prints(rate: float, report: Mapping[str, Any], rows: Mapping[str, Any]) -> Figures:
    """Return wrk's values for a trial: `report` is its tool.json, `rows` its rows.json."""
    measured = dict(zip(rows["ok"]["value_us"], rows["ok"]["count"], strict=True))
    interval = report["duration_us"] // (report["requests"] // report["connections"])
    counts = add_latencies(measured, int(interval))
    return Figures(
        rate=rate,
        p50=find_percentile_us(counts, 50) / 1e6,
        p99=find_percentile_us(counts, 99) / 1e6,
    )


def add_latencies(measured: Mapping[int, int], interval: int) -> dict[int, int]:
    """Return the counts by latency (µs) as wrk has them at the end."""
    counts = dict(measured)
    for us, count in measured.items():
        if us >= 2 * interval:
            for below in range(us - interval, interval, -interval):
                counts[below] = counts.get(below, 0) + count
    return counts


def find_percentile_us(counts: Mapping[int, int], percentile: float) -> int:
    """Return the percentile by wrk's rule: the first value of rank ⌊p/100 · n + 0.5⌋ or more."""
    rank = int(percentile / 100 * sum(counts.values()) + 0.5)
    passed = 0
    for us in sorted(counts):
        passed += counts[us]
        if passed >= rank:
            return us
    raise ValueError("there is no latency")
