"""Imported results in reports, next to the trials of this Pitwall."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.reports.pivot_model import Sample
from orchestrator.reports.pivot_trials import CellKey, TriedCell
from orchestrator.results.models import Metric, Reading

#: Without a version: the definition that they were measured with is unknown.
_NEW = TriedCell(version=0, trials=(), samples=(), merged={})


def with_external(
    cells: Mapping[CellKey, TriedCell],
    benchmark: Benchmark,
    commits: Sequence[Commit],
    keys: Collection[str],
) -> dict[CellKey, TriedCell]:
    """Add the imported results of these commits to the cells."""
    samples_by_cell: dict[CellKey, list[Sample]] = defaultdict(list)
    wanted = dict(Metric.objects.filter(key__in=list(keys)).values_list("pk", "key"))
    rows = Reading.objects.filter(
        case__benchmark=benchmark,
        commit__in=[commit.pk for commit in commits],
        provenance__isnull=False,
    ).order_by("pk")
    for host, case, commit, validity, metrics, values, reasons in rows.values_list(
        "host_id", "case_id", "commit_id", "validity", "metrics", "values", "provenance__reasons"
    ):
        readings = {
            wanted[metric]: value
            for metric, value in zip(metrics, values, strict=True)
            if metric in wanted
        }
        samples_by_cell[host, case, commit].append(_sample(validity, reasons, readings))
    added = {
        cell: replace(each, samples=(*each.samples, *samples))
        for cell, samples in samples_by_cell.items()
        for each in [cells.get(cell, _NEW)]
    }
    return {**cells, **added}


def _sample(validity: str, reasons: object, values: Mapping[str, float]) -> Sample:
    return Sample(
        state="measured",
        validity=validity,
        reasons=reasons if isinstance(reasons, list) else [],
        message="",
        values=values,
    )
