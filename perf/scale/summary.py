"""The metrics of this benchmark, their targets, and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from perf.harness.report import Requirement, render_table
from perf.scale.ingest import SentBatches
from perf.scale.loading import Dataset
from perf.scale.page_requests import PageComparison

#: Limit of a page's median as a multiple of the bare view's.
RATIOS = {"history data": 6.0, "comparison": 12.0, "overview": 5.0}
P95_S = 0.05
FLAT = 1.5
KILOBYTES = 30.0
ONE, FOUR, SINGLE, METRICS_4, AGAIN, NEW_COMMIT = (
    "one client, 50 a post",
    "four clients, 50 a post",
    "one by one",
    "one client, 50 a post, 4 metrics",
    "a post repeated",
    "8 clients at one new commit",
)


@dataclass(slots=True, kw_only=True)
class Measurements:
    """All measurements; `sent[load, size]` are the rounds."""

    sites: Mapping[str, Dataset]
    beside: dict[tuple[str, str], PageComparison] = field(default_factory=dict)
    sent: dict[tuple[str, str], list[SentBatches]] = field(default_factory=dict)
    first_s: dict[tuple[str, str], float] = field(default_factory=dict)
    memory_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def smallest(self) -> str:
        return next(iter(self.sites))

    @property
    def largest(self) -> str:
        return list(self.sites)[-1]

    @property
    def pages(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.beside))


def build_requirements(data: Measurements) -> dict[str, Requirement | None]:
    limits: dict[str, Requirement | None] = {}
    for page in data.pages:
        key = page.replace(" ", "_")
        limits[f"{key}_to_bare"] = (
            Requirement(relation="<=", limit=RATIOS[page]) if page in RATIOS else None
        )
        limits[f"{key}_p95_s"] = Requirement(relation="<", limit=P95_S)
        limits[f"{key}_growth"] = Requirement(relation="<=", limit=FLAT)
    return {
        **limits,
        "history_data_kb": Requirement(relation="<", limit=KILOBYTES),
        "ingest_one_client_per_s": Requirement(relation=">=", limit=4_000),
        "ingest_four_clients_per_s": Requirement(relation=">=", limit=6_000),
        "ingest_one_by_one_per_s": Requirement(relation=">=", limit=300),
        "ingest_cpu_ms": Requirement(relation="<", limit=0.25),
        "ingest_growth": Requirement(relation="<=", limit=FLAT),
        "results_lost": Requirement(relation="<=", limit=0),
        "results_doubled": Requirement(relation="<=", limit=0),
        "trials": None,
        "load_s": None,
    }


def get_measured(data: Measurements) -> dict[str, float]:
    """Return the values at the largest size; `growth` is the ratio to the smallest."""
    figures: dict[str, float] = {}
    large, small = data.largest, data.smallest
    for page in data.pages:
        key = page.replace(" ", "_")
        here = data.beside[page, large]
        figures[f"{key}_to_bare"] = here.ratio
        figures[f"{key}_p95_s"] = here.alone.p95_s
        figures[f"{key}_growth"] = here.ratio / data.beside[page, small].ratio
    rate = {load: compute_rate(data.sent[load, large]) for load in (ONE, FOUR, SINGLE)}
    every = [sent for rounds in data.sent.values() for sent in rounds]
    return {
        **figures,
        "history_data_kb": data.beside["history data", large].page.wire_bytes / 1000,
        "ingest_one_client_per_s": rate[ONE],
        "ingest_four_clients_per_s": rate[FOUR],
        "ingest_one_by_one_per_s": rate[SINGLE],
        "ingest_cpu_ms": median(sent.cpu_ms for sent in data.sent[ONE, large]),
        "ingest_growth": compute_rate(data.sent[ONE, small]) / rate[ONE],
        "results_lost": float(sum(sent.lost for sent in every)),
        "results_doubled": float(sum(sent.doubled for sent in every)),
        "trials": float(data.sites[large].trials),
        "load_s": sum(data.sites[large].seconds.values()),
    }


def compute_rate(rounds: list[SentBatches]) -> float:
    return median(sent.rate for sent in rounds)


def format_text(data: Measurements) -> str:
    return "\n\n".join([_format_sites(data), format_pages(data), _format_sent(data)])


def list_details(data: Measurements) -> dict[str, Any]:
    """Return the details that are stored next to the results."""
    return {
        "databases": {
            size: {
                "trials": dataset.trials,
                "points": dataset.points,
                "runs": dataset.runs,
                "bytes": dataset.bytes,
                "seconds": dataset.seconds,
                "server_bytes": data.memory_bytes.get(size),
            }
            for size, dataset in data.sites.items()
        },
        "pages": {
            f"{page}, {size}": {
                "bare_s": round(each.bare.median_s, 5),
                "median_s": round(each.page.median_s, 5),
                "p95_s": round(each.page.p95_s, 5),
                "alone_p95_s": round(each.alone.p95_s, 5),
                "to_bare": round(each.ratio, 2),
                "served_s": round(median(each.page.served_s), 5),
                "cpu_ms": round(each.page.cpu_ms, 2),
                "bare_cpu_ms": round(each.bare.cpu_ms, 2),
                "bytes": each.page.wire_bytes,
                "first_s": round(data.first_s[page, size], 3),
                "requests": len(each.page.served_s),
            }
            for (page, size), each in data.beside.items()
        },
        "ingest": {
            f"{load}, {size}": {
                "per_s": round(compute_rate(rounds)),
                "cpu_ms": round(median(sent.cpu_ms for sent in rounds), 3),
                "results": sum(sent.accepted + sent.repeated for sent in rounds),
            }
            for (load, size), rounds in data.sent.items()
        },
    }


def _format_sites(data: Measurements) -> str:
    rows = [
        [
            size,
            f"{dataset.trials:,}",
            f"{dataset.points:,}",
            f"{dataset.runs:,}",
            f"{dataset.bytes / 1e9:.2f} GB",
            f"{sum(dataset.seconds.values()):.0f} s",
            f"{data.memory_bytes.get(size, 0) / 1e6:.0f} MB",
        ]
        for size, dataset in data.sites.items()
    ]
    head = ["database", "trials", "points", "runs", "on disk", "filled in", "server's memory"]
    return render_table(head, rows)


def format_pages(data: Measurements) -> str:
    """Return what is known before the ingest."""
    rows = [
        [
            f"{page}, {size}",
            f"{1000 * each.bare.median_s:.1f}",
            f"{1000 * each.page.median_s:.1f}",
            f"{each.ratio:.1f}",
            f"{1000 * each.page.p95_s:.1f}",
            f"{1000 * each.alone.p95_s:.1f}",
            f"{each.page.cpu_ms:.1f}",
            f"{each.cpu_ratio:.1f}",
            f"{each.page.wire_bytes / 1000:.1f}",
            f"{data.first_s[page, size]:.2f}",
        ]
        for (page, size), each in data.beside.items()
    ]
    head = [
        "page",
        "bare ms",
        "ms",
        "to bare",
        "server p95",
        "p95 alone",
        "CPU ms",
        "to bare",
        "kB",
        "first s",
    ]
    return render_table(head, rows)


def _format_sent(data: Measurements) -> str:
    rows = [
        [
            f"{load}, {size}",
            f"{compute_rate(rounds):,.0f}",
            f"{median(sent.cpu_ms for sent in rounds):.3f}",
            f"{sum(sent.accepted + sent.repeated for sent in rounds):,}",
            str(sum(sent.lost for sent in rounds)),
            str(sum(sent.doubled for sent in rounds)),
        ]
        for (load, size), rounds in data.sent.items()
    ]
    return render_table(["ingest", "results/s", "CPU ms each", "results", "lost", "doubled"], rows)
