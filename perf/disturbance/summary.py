"""The effect of each share on each metric, and the targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from cli.pitwall.units import format_change, format_interval, format_percent
from orchestrator.loadtools.metrics import find_metrics
from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.stats.comparison import Comparison, compare_blocks
from perf.fidelity.loads import Load
from perf.fidelity.pitwall import Reading
from perf.harness.report import Requirement, render_table

METRICS = ("requests.rate", "latency.p50", "latency.p99", "cpu.seconds_per_1k")
#: Keys of the thresholds that the benchmark tests.
SOFT, HARD = "foreign_process", "busy_neighbour"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbedPair:
    """A trial without neighbour and one next to it, in the same block."""

    alone: Reading
    disturbed: Reading


#: Load and share → one pair for each block.
Pairs = Mapping[tuple[Load, float], Sequence[DisturbedPair]]


def compare_pairs(pairs: Sequence[DisturbedPair]) -> dict[str, Comparison]:
    """Return metric → the effect of the neighbour, as a comparison of equal commits."""
    return {
        metric.key: compare_blocks(
            [read_metric(pair.alone, metric.key) for pair in pairs],
            [read_metric(pair.disturbed, metric.key) for pair in pairs],
            better=metric.better,
            margin=metric.margin,
        )
        for metric in find_metrics(METRICS)
    }


def read_metric(reading: Reading, metric: str) -> float | None:
    figures = reading.figures
    return {
        "requests.rate": figures.rate,
        "latency.p50": figures.p50,
        "latency.p99": figures.p99,
        "cpu.seconds_per_1k": reading.cpu_per_1k,
    }[metric]


def measure_effects(pairs_by_share: Pairs) -> dict[str, float]:
    """Return for each load and share the largest effect beyond its margin, and observed shares.

    An effect counts from its margin on: 0 means that no metric moved by more than its margin.
    """
    values: dict[str, float] = {}
    for (load, share), pairs in pairs_by_share.items():
        key = f"{load.key}_{round(100 * share)}_percent"
        compared = compare_pairs(pairs)
        values[f"{key}_beyond_margin"] = max(_exceed_margin(each) for each in compared.values())
        observed = _compute_observed(pairs)
        if observed is not None:
            values[f"{key}_observed"] = observed
        values[f"{key}_flagged"] = sum(_is_flagged(pair.disturbed) for pair in pairs) / len(pairs)
    return values


def build_requirements(values: Mapping[str, float]) -> dict[str, Requirement | None]:
    """Require that nothing moves without a neighbour, and that a whole core is always flagged."""
    limits = {
        "_0_percent_beyond_margin": Requirement(relation="<=", limit=0.0),
        "_100_percent_flagged": Requirement(relation=">=", limit=1.0),
    }
    return {
        key: next((limit for end, limit in limits.items() if key.endswith(end)), None)
        for key in values
    }


def build_text(pairs_by_share: Pairs) -> str:
    rows = []
    for (load, share), pairs in pairs_by_share.items():
        observed = _compute_observed(pairs)
        counts = Counter(pair.disturbed.validity for pair in pairs)
        rows.append(
            (
                f"{load.title}, {format_percent(share)} of a core",
                "unknown" if observed is None else format_percent(observed),
                *(_format_effect(each) for each in compare_pairs(pairs).values()),
                f"{counts['valid']} / {counts['suspect']} / {counts['invalid']}",
            )
        )
    titles = [metric.title for metric in find_metrics(METRICS)]
    effects = render_table(("Neighbour", "observed", *titles, "valid / suspect / invalid"), rows)
    limits = ", ".join(f"{code} {THRESHOLDS[code].text}" for code in (SOFT, HARD))
    return f"{effects}\n\nThresholds: {limits}"


def build_details(pairs_by_share: Pairs) -> list[dict[str, Any]]:
    """Return every effect, for the file of results."""
    return [
        {
            "load": load.key,
            "share": share,
            "observed": [pair.disturbed.foreign_share for pair in pairs],
            "validity": dict(Counter(pair.disturbed.validity for pair in pairs)),
            "effects": {
                key: {"change": each.change, "low": each.low, "high": each.high,
                      "margin": each.margin, "verdict": each.verdict}
                for key, each in compare_pairs(pairs).items()
            },
        }
        for (load, share), pairs in pairs_by_share.items()
    ]  # fmt: skip


def _compute_observed(pairs: Sequence[DisturbedPair]) -> float | None:
    """Return the median of the cores that other processes used next to a neighbour."""
    shares = (pair.disturbed.foreign_share for pair in pairs)
    known = [share for share in shares if share is not None]
    return median(known) if known else None


def _exceed_margin(compared: Comparison) -> float:
    """Return by how much the whole interval is beyond the margin; 0 if it is not."""
    if compared.low is None or compared.high is None:
        return 0.0
    return max(compared.low - compared.margin, -compared.margin - compared.high, 0.0)


def _is_flagged(reading: Reading) -> bool:
    return bool({SOFT, HARD} & set(reading.reasons))


def _format_effect(compared: Comparison) -> str:
    if compared.change is None or compared.low is None or compared.high is None:
        return "unknown"
    return f"{format_change(compared.change)} ({format_interval((compared.low, compared.high))})"
