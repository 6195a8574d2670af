"""The summary of the pairs, and the targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from perf.fidelity.loads import Load
from perf.fidelity.pitwall import Reading
from perf.fidelity.ratios import Ratio, estimate_ratio
from perf.fidelity.tool_output import Figures
from perf.harness.report import Requirement, render_table

METRICS = ("rate", "p50", "p99")
TITLES = {"rate": "requests/s", "p50": "p50", "p99": "p99"}
#: The limit of a ratio whose interval does not contain 1.
TOLERANCE = 0.01
#: Per cent of one core.
SAMPLER_LIMIT = 1.0
SAMPLER = "sampler_percent_of_a_core"
SAMPLER_MAX = f"{SAMPLER}_max"
#: The services of Pitwall on the measured machine, with PostgreSQL and Redis.
SERVICES_LIMIT, IDLE_LIMIT = 0.5, 1.0
SERVICES = "services_percent_of_a_core"
IDLE = f"{SERVICES}_idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same load, directly and through Pitwall."""

    hand: Figures
    pitwall: Reading

    @property
    def comparable(self) -> Figures:
        """Pitwall's values by the tool's own definitions."""
        return self.pitwall.as_printed or self.pitwall.figures


Pairs = Mapping[Load, Sequence[Pair]]


def get_measured(pairs_by_load: Pairs, idle: float) -> dict[str, float]:
    """Return ratios of Pitwall to direct loads, their distance from 1, and CPU of Pitwall.

    `idle`: CPU seconds of the services per second without work.
    """
    values: dict[str, float] = {}
    for load, pairs in pairs_by_load.items():
        for metric in METRICS:
            ratio = _compute_ratio(pairs, metric, lambda pair: pair.comparable)
            values[f"{load.key}_{metric}_ratio"] = ratio.estimate
            values[f"{load.key}_{metric}_deviation"] = ratio.deviation
        if _differs(pairs):
            for metric in METRICS:
                read = _compute_ratio(pairs, metric, lambda pair: pair.pitwall.figures)
                values[f"{load.key}_{metric}_as_read_ratio"] = read.estimate
    shares = _list_sampler_percents(pairs_by_load)
    services = [pair.pitwall.services_share for pairs in pairs_by_load.values() for pair in pairs]
    known = [100 * share for share in services if share is not None]
    if known:
        values[SERVICES] = median(known)
    return {**values, SAMPLER: median(shares), SAMPLER_MAX: max(shares), IDLE: 100 * idle}


def build_requirements(values: Iterable[str]) -> dict[str, Requirement | None]:
    """Return limits for the keys of `measured`; None is only reported."""
    limits = {
        "_deviation": Requirement(relation="<=", limit=TOLERANCE),
        SAMPLER: Requirement(relation="<", limit=SAMPLER_LIMIT),
        SERVICES: Requirement(relation="<", limit=SERVICES_LIMIT),
        IDLE: Requirement(relation="<", limit=IDLE_LIMIT),
    }
    return {
        key: next((limit for end, limit in limits.items() if key.endswith(end)), None)
        for key in values
    }


def format_text(pairs_by_load: Pairs) -> str:
    """Return the tables for people."""
    return "\n\n".join([_format_ratios(pairs_by_load), _format_trials(pairs_by_load)])


def list_details(pairs_by_load: Pairs) -> dict[str, Any]:
    """Return every pair, for the file of results."""
    return {
        load.key: {
            "ratios": {
                metric: asdict(_compute_ratio(pairs, metric, lambda pair: pair.comparable))
                for metric in METRICS
            },
            "pairs": [_describe_pair(pair) for pair in pairs],
            "trials": dict(Counter(pair.pitwall.validity for pair in pairs)),
            "reasons": dict(_count_reasons(pairs)),
        }
        for load, pairs in pairs_by_load.items()
    }


def _compute_ratio(
    pairs: Sequence[Pair], metric: str, get_figures: Callable[[Pair], Figures]
) -> Ratio:
    return estimate_ratio(
        [getattr(get_figures(pair), metric) / getattr(pair.hand, metric) for pair in pairs]
    )


def _differs(pairs: Sequence[Pair]) -> bool:
    """Return whether Pitwall's definitions differ from the tool's."""
    return any(pair.pitwall.as_printed for pair in pairs)


def _list_sampler_percents(pairs_by_load: Pairs) -> list[float]:
    shares = [pair.pitwall.sampler_share for pairs in pairs_by_load.values() for pair in pairs]
    known = [100 * share for share in shares if share is not None]
    if not known:
        raise ValueError("no trial reports the CPU time of the sampler")
    return known


def _count_reasons(pairs: Sequence[Pair]) -> Counter[str]:
    return Counter(reason for pair in pairs for reason in pair.pitwall.reasons)


def _describe_pair(pair: Pair) -> dict[str, Any]:
    reading = pair.pitwall
    return {
        "hand": asdict(pair.hand),
        "pitwall": asdict(reading.figures),
        "pitwall_as_printed": asdict(reading.as_printed) if reading.as_printed else None,
        "sampler_share": reading.sampler_share,
        "services_share": reading.services_share,
        "validity": reading.validity,
    }


def _format_ratios(pairs_by_load: Pairs) -> str:
    rows = [
        _build_row(load.title, metric, pairs, lambda pair: pair.comparable)
        for load, pairs in pairs_by_load.items()
        for metric in METRICS
    ]
    rows += [
        _build_row(
            f"{load.title}, as Pitwall defines it,",
            metric,
            pairs,
            lambda pair: pair.pitwall.figures,
        )
        for load, pairs in pairs_by_load.items()
        if _differs(pairs)
        for metric in METRICS
    ]
    return render_table(("Pitwall ÷ by hand", "by hand", "ratio", "95 % from", "to", "sure"), rows)


def _build_row(
    title: str, metric: str, pairs: Sequence[Pair], get_figures: Callable[[Pair], Figures]
) -> tuple[str, ...]:
    ratio = _compute_ratio(pairs, metric, get_figures)
    hand = median(getattr(pair.hand, metric) for pair in pairs)
    shown = f"{hand:.0f}/s" if metric == "rate" else f"{1000 * hand:.3f} ms"
    numbers = [f"{each:.4f}" for each in (ratio.estimate, ratio.low, ratio.high)]
    return (f"{title} {TITLES[metric]}", shown, *numbers, f"{100 * ratio.deviation:.2f} %")


def _format_trials(pairs_by_load: Pairs) -> str:
    rows = []
    for load, pairs in pairs_by_load.items():
        counts = Counter(pair.pitwall.validity for pair in pairs)
        shares = [pair.pitwall.sampler_share for pair in pairs]
        known = [100 * share for share in shares if share is not None]
        spread = f"{median(known):.2f} % (most {max(known):.2f} %)" if known else "unknown"
        why = ", ".join(f"{reason} {n}" for reason, n in _count_reasons(pairs).most_common(3))
        valid = f"{counts['valid']} / {counts['suspect']} / {counts['invalid']}"
        rows.append((load.title, valid, spread, str(len(shares) - len(known)), why or "-"))
    head = ("Trials", "valid / suspect / invalid", "sampler, of a core", "unknown", "why")
    return render_table(head, rows)
