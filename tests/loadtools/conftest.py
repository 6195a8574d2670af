"""Rows and a result.json such as the agent leaves them, made to fit a recorded output of oha."""

import json
import re
from pathlib import Path

import pytest

from orchestrator.loadtools.model import LoadSpec

GOLDEN = Path(__file__).parent / "golden" / "oha-1.16.0"


def recorded(name):
    return (GOLDEN / f"oha_{name}.json").read_bytes()


def rows_for(tool_json, *, start_s=0.0):
    """Rows that agree with the output: as many answers, each at one of its percentiles."""
    output = json.loads(tool_json)
    by_status = output["statusCodeDistribution"]
    good = by_status.get("200", 0)
    answered = sum(by_status.values())
    seconds = output["latencyPercentiles"]["p50"]
    return {
        "schema": 1,
        "all": {"n": answered, "percentiles": dict(output["latencyPercentiles"])},
        "window": {"start_s": start_s, "end_s": output["summary"]["total"] if answered else None},
        "ok": _part(seconds, good),
        "other": _part(seconds, answered - good),
        "by_status": by_status,
        "bytes": output["summary"]["totalData"],
        "slices": [],
    }


def _part(seconds, n):
    return (
        {"value_us": [round(seconds * 1e6)], "count": [n]} if n else {"value_us": [], "count": []}
    )


def build_load(result, rows):
    """The load that the flags of `result_for` describe."""
    flags = dict(zip(result["argv"][:-1], result["argv"][1:], strict=True))
    rate = flags.get("-q")
    requests = flags.get("-n")
    start_s = rows.get("window", {}).get("start_s") or 0.0
    seconds = {"ms": 1e-3, "s": 1.0}
    match = re.match(r"([0-9]+)(ms|s)", flags.get("-z", ""))
    return LoadSpec(
        path="/",
        connections=int(flags["-c"]),
        model="open" if rate else "closed",
        rate=float(rate) if rate else None,
        duration_s=int(match[1]) * seconds[match[2]] - start_s if match else None,
        requests=int(requests) if requests else None,
        warmup_s=start_s,
    )


def result_for(*, argv=("-z", "2000ms", "-c", "10"), **changes):
    words = ["oha", "--worker-threads", "1", *argv, "http://127.0.0.1:8080/"]
    return {
        "schema": 1,
        "argv": words,
        "tool": {"name": "oha", "version": "1.16.0", "sha256": "ab"},
        "tool_cpus": 1,
        "rc": 0,
        "signal": None,
        "server_exit": None,
        "load_started_at": 1000.0,
        "load_ended_at": 1002.0,
        "hung": False,
        "usage": {"server_cpu_s": None, "tool_cpu_s": None, "steal_s": None, "reasons": {}},
        **changes,
    }


@pytest.fixture
def calm():
    """A plain good closed load: 1,000 answers of 10 ms over ten connections in a second."""
    percentiles = dict.fromkeys(("p10", "p50", "p99"), 0.01)
    output = {
        "summary": {"requestsPerSec": 990.0, "stddev": None},
        "latencyPercentiles": percentiles,
        "statusCodeDistribution": {"200": 1000},
        "errorDistribution": {},
    }
    rows = {
        "all": {"n": 1000, "percentiles": dict(percentiles)},
        "window": {"start_s": 0.0, "end_s": 1.004},
        "ok": {"value_us": [9_000, 10_000, 11_000], "count": [100, 800, 100]},
        "other": {"value_us": [], "count": []},
        "by_status": {"200": 1000},
        "bytes": 13_000,
        "slices": [],
    }
    return output, rows, result_for(argv=("-z", "1s", "-c", "10"))
