"""Export of results in the format that imports read (`result_files`): one object each."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.fleet.models import Host
from orchestrator.results.models import Metric, Reading
from orchestrator.runs.models import Run, Trial

AT_ONCE = 500


def load_readings(
    member: Member,
    benchmark: Benchmark,
    *,
    run: Run | None = None,
    case: Case | None = None,
    commit: Commit | None = None,
    host: Host | None = None,
) -> QuerySet[Reading]:
    """Return the measured and imported readings of a benchmark, newest last."""
    rows = Reading.objects.filter(
        member.sees("case__benchmark__project"), case__benchmark=benchmark
    )
    if run is not None:
        rows = rows.filter(pk__in=Trial.objects.filter(job__run=run).values("pk"))
    given = {"case": case, "commit": commit, "host": host}
    rows = rows.filter(**{name: value for name, value in given.items() if value is not None})
    return rows.select_related("case__benchmark__project", "commit", "host__profile").order_by("pk")


def export_readings(rows: QuerySet[Reading]) -> Iterator[dict[str, Any]]:
    """Yield each result as a `ResultIn`: sent to another Pitwall, it is the same result there."""
    names = dict(Metric.objects.values_list("pk", "key"))
    every = rows.iterator(chunk_size=AT_ONCE)
    while part := list(islice(every, AT_ONCE)):
        trials = _load_trials(part)
        for reading in part:
            yield _export_reading(reading, names, trials.get(reading.pk))


def _load_trials(part: Iterable[Reading]) -> dict[Any, Trial]:
    """Return the trials of those readings that this Pitwall measured."""
    ours = [each.pk for each in part if each.provenance is None]
    return Trial.objects.only("job", "round", "reasons").in_bulk(ours)


def _export_reading(reading: Reading, names: dict[int, str], trial: Trial | None) -> dict[str, Any]:
    origin = reading.provenance or {}
    pairs = zip(reading.metrics, reading.values, strict=True)
    benchmark = reading.case.benchmark
    fields = {
        # The id of the sender, so that a result that comes back is recognised.
        "id": origin.get("id") or str(reading.pk),
        "project": benchmark.project.slug,
        "benchmark": benchmark.slug,
        "host": reading.host.name,
        "profile": reading.host.profile.slug,
        "commit": reading.commit.sha,
        "commit_facts": _export_commit(reading.commit),
        "parameters": reading.case.parameters,
        "metrics": {names[metric]: value for metric, value in pairs if metric in names},
        "validity": reading.validity,
        "reasons": [
            str(each)[:1000] for each in (trial.reasons if trial else origin.get("reasons")) or []
        ][:20],
        "at": reading.at.isoformat(),
        "block": f"{trial.job_id}/{trial.round}" if trial else origin.get("block"),
        "url": origin.get("url"),
        "note": origin.get("note"),
    }
    return {name: value for name, value in fields.items() if value}


def _export_commit(commit: Commit) -> dict[str, Any]:
    return {
        "subject": commit.subject,
        "author": commit.author,
        "committed_at": commit.committed_at.isoformat(),
        "parents": commit.parents,
    }
