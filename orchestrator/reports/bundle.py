"""The evidence in the bundle of a report: definitions, hosts, commands and distributions.

Only members get these files. Trials are read in portions, so memory does not grow with them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from orchestrator.benchmarks.models import Definition
from orchestrator.reports.hardware import load_snapshots
from orchestrator.reports.report_builder import Report
from orchestrator.results.models import Histogram
from orchestrator.runs.models import Trial

#: The most trials whose commands and distributions are included, and the bytes of the latter.
MAX_TRIALS = 2000
MAX_HISTOGRAM_BYTES = 64 * 1024**2
_PORTION = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFile:
    name: str
    content: bytes


def iterate_definitions(report: Report) -> Iterator[BundleFile]:
    """Yield the YAML of each version of the definition that the report's trials used."""
    versions = report.versions or (report.definition.version,)
    rows = Definition.objects.filter(benchmark=report.benchmark, version__in=versions)
    for version, source in rows.order_by("version").values_list("version", "source"):
        yield BundleFile(name=f"definition-{version}.yaml", content=source.encode())


def iterate_evidence(report: Report) -> Iterator[BundleFile]:
    """Yield the facts of hosts, the command lines of trials, and their distributions."""
    snapshots = load_snapshots(report)
    facts = {
        host.name: {"taken_at": snapshot.taken_at.isoformat(), "facts": snapshot.facts}
        for host in report.hosts
        if (snapshot := snapshots.get(host.pk)) is not None
    }
    yield BundleFile(name="hosts.json", content=_render_json(facts))
    trials = Trial.objects.filter(pk__in=report.trials[:MAX_TRIALS]).order_by("pk")
    yield BundleFile(name="commands.jsonl", content=b"".join(_iterate_commands(trials)))
    yield from _iterate_histograms(trials)


def describe_limits(report: Report) -> str:
    """Return which trials the bundle leaves out; empty if it has all."""
    if len(report.trials) <= MAX_TRIALS:
        return ""
    return (
        f"Command lines and distributions are of {MAX_TRIALS} of {len(report.trials)} trials; "
        "the API has all of them."
    )


def _iterate_commands(trials: QuerySet[Trial]) -> Iterator[bytes]:
    """Yield a line of JSON for each trial, with the exact command lines of its processes."""
    rows = trials.values_list(
        "pk", "case__key", "host__name", "variant__commit__sha", "round", "validity",
        "provenance__server_argv", "provenance__argv",
    )  # fmt: skip
    names = ("trial", "case", "host", "commit", "round", "validity", "server", "load")
    for row in rows.iterator(chunk_size=_PORTION):
        entry = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        yield json.dumps(entry, default=str, ensure_ascii=False).encode() + b"\n"


def _iterate_histograms(trials: QuerySet[Trial]) -> Iterator[BundleFile]:
    """Yield each distribution in the V2 encoding of HdrHistogram, until they are too large."""
    size = 0
    rows = Histogram.objects.filter(trial__in=trials).order_by("trial_id", "kind")
    for trial, kind, encoded in rows.values_list("trial_id", "kind", "encoded").iterator(
        chunk_size=_PORTION
    ):
        content = bytes(encoded)
        size += len(content)
        if size > MAX_HISTOGRAM_BYTES:
            yield BundleFile(name="histograms/LEFT-OUT.txt", content=_LIMIT_NOTE)
            return
        yield BundleFile(name=f"histograms/{trial}-{kind}.hdr", content=content)


_LIMIT_NOTE = (
    f"Further distributions would exceed {MAX_HISTOGRAM_BYTES // 1024**2} MiB. "
    "The API has all of them.\n"
).encode()


def _render_json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()
