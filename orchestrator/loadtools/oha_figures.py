"""All values that oha's own JSON contains, under keys that start with `oha.`.

They are stored for completeness and never judged: oha counts any status as a success, counts errors
and aborted requests as requests, and includes the warm-up. Its histograms are left out: the rows
contain everything in their eleven linear buckets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_PERCENTILES = ("p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99")


@dataclass(frozen=True, slots=True, kw_only=True)
class OhaFigure:
    """`path` into the JSON; the value times `factor` is in `unit`."""

    path: tuple[str, ...]
    title: str
    unit: Literal["1/s", "s", "ratio", "B", "B/s"]
    better: Literal["higher", "lower"] = "lower"
    factor: float = 1.0

    @property
    def key(self) -> str:
        return ".".join(("oha", *self.path))


_SUMMARY: tuple[OhaFigure, ...] = (
    OhaFigure(
        path=("summary", "successRate"), title="oha: success rate", unit="ratio", better="higher"
    ),
    OhaFigure(path=("summary", "total"), title="oha: total time", unit="s"),
    OhaFigure(path=("summary", "slowest"), title="oha: slowest", unit="s"),
    OhaFigure(path=("summary", "fastest"), title="oha: fastest", unit="s"),
    OhaFigure(path=("summary", "average"), title="oha: average", unit="s"),
    OhaFigure(
        path=("summary", "requestsPerSec"), title="oha: requests/s", unit="1/s", better="higher"
    ),
    OhaFigure(path=("summary", "totalData"), title="oha: total data", unit="B", better="higher"),
    OhaFigure(path=("summary", "sizePerRequest"), title="oha: size per request", unit="B"),
    OhaFigure(
        path=("summary", "sizePerSec"), title="oha: size per second", unit="B/s", better="higher"
    ),
    OhaFigure(
        path=("metrics", "success_rate"), title="oha: success rate (CI)", unit="ratio",
        better="higher",
    ),
    OhaFigure(
        path=("metrics", "requests_per_sec"), title="oha: requests/s (CI)", unit="1/s",
        better="higher",
    ),
)  # fmt: skip


def _iterate_figures() -> Iterator[OhaFigure]:
    yield from _SUMMARY
    for name in ("min", "mean", "p50", "p95", "p99", "max"):
        yield OhaFigure(
            path=("metrics", "latency_ms", name), title=f"oha: latency {name} (CI)", unit="s",
            factor=1e-3,
        )  # fmt: skip
    for section, title in (("latencyPercentiles", "latency"), ("firstBytePercentiles", "byte")):
        for name in _PERCENTILES:
            yield OhaFigure(path=(section, name), title=f"oha: {title} {name}", unit="s")
    for path in (("mean",), ("stddev",), ("max",), ("min",)):
        yield OhaFigure(
            path=("rps", *path), title=f"oha: rps {path[0]}", unit="1/s", better="higher"
        )
    for name in _PERCENTILES:
        yield OhaFigure(
            path=("rps", "percentiles", name), title=f"oha: rps {name}", unit="1/s", better="higher"
        )
    for section in ("DNSDialup", "DNSLookup", "firstByte"):
        for name in ("average", "fastest", "slowest"):
            yield OhaFigure(
                path=("details", section, name), title=f"oha: {section} {name}", unit="s"
            )


OHA_FIGURES: tuple[OhaFigure, ...] = tuple(_iterate_figures())
