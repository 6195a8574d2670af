"""Parse the output of load tools, without any code of Pitwall's."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Successful answers per second, and latencies in seconds."""

    rate: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedValues:
    """The output of one start of a tool: its report, its log of requests, its stdout."""

    out: Path
    rows: Path
    stdout: str
    duration_s: float


def read_oha(printed: PrintedValues) -> Figures:
    """Read oha's JSON. The rate is answers by duration: oha's own rate includes errors."""
    report = json.loads(printed.out.read_bytes())
    ok = sum(
        count for code, count in report["statusCodeDistribution"].items() if code[0] in ("2", "3")
    )
    latencies = report["latencyPercentiles"]
    return Figures(rate=ok / printed.duration_s, p50=latencies["p50"], p99=latencies["p99"])


def read_ghz(printed: PrintedValues) -> Figures:
    """Read ghz's JSON report, which has nanoseconds."""
    report = json.loads(printed.rows.read_bytes())
    seconds = {each["percentage"]: each["latency"] / 1e9 for each in report["latencyDistribution"]}
    return Figures(rate=report["rps"], p50=seconds[50], p99=seconds[99])


def read_wrk(printed: PrintedValues) -> Figures:
    """Read the line that `percentiles.lua` adds to wrk's output."""
    report = json.loads(printed.stdout.splitlines()[-1])
    return Figures(
        rate=report["requests"] / report["duration_us"] * 1e6,
        p50=report["p50_us"] / 1e6,
        p99=report["p99_us"] / 1e6,
    )


def read_h2load(printed: PrintedValues) -> Figures:
    """Read h2load's rate from its text, and percentiles by nearest rank from its log."""
    match = re.search(r"^finished in \S+, ([0-9.]+) req/s", printed.stdout, re.MULTILINE)
    if match is None:
        raise ValueError(f"h2load printed no rate: {printed.stdout[-300:]!r}")
    lines = (line.split("\t") for line in printed.rows.read_text().splitlines())
    us = sorted(int(latency) for _, status, latency in lines if status == "200")
    p50, p99 = (us[math.ceil(share * len(us)) - 1] / 1e6 for share in (0.5, 0.99))
    return Figures(rate=float(match[1]), p50=p50, p99=p99)
