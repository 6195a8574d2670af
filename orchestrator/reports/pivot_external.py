"""Imported results in reports, in cells without trials of this Pitwall."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.reports.pivot_model import Sample
from orchestrator.reports.pivot_trials import CellKey, TriedCell, load_change_times
from orchestrator.results.models import Metric, Reading

#: Without a version: the definition that they were measured with is unknown.
_NEW = TriedCell(version=0, epoch=0, tool="", trials=(), samples=(), merged={})
#: Epoch of the host → the results of a cell.
_Epochs = Mapping[int, Sequence[Sample]]


def with_external(
    cells: Mapping[CellKey, TriedCell],
    benchmark: Benchmark,
    commits: Sequence[Commit],
    keys: Collection[str],
) -> dict[CellKey, TriedCell]:
    """Add the imported results of these commits to the cells.

    It is not known how they were measured, so they are not combined with trials of this Pitwall:
    cells with trials that count only count them as left out. Of several epochs, the newest is used.
    """
    added = {
        cell: _add_samples(cells.get(cell, _NEW), epochs)
        for cell, epochs in _load_samples(benchmark, commits, keys).items()
    }
    return {**cells, **added}


def _load_samples(
    benchmark: Benchmark, commits: Sequence[Commit], keys: Collection[str]
) -> dict[CellKey, _Epochs]:
    samples: dict[CellKey, dict[int, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    wanted = dict(Metric.objects.filter(key__in=list(keys)).values_list("pk", "key"))
    rows = Reading.objects.filter(
        case__benchmark=benchmark,
        commit__in=[commit.pk for commit in commits],
        provenance__isnull=False,
    )
    changes = load_change_times(rows.order_by().values("host").distinct())
    for host, case, commit, at, validity, metrics, values, reasons in rows.order_by(
        "pk"
    ).values_list(
        "host_id", "case_id", "commit_id", "at", "validity", "metrics", "values",
        "provenance__reasons",
    ):  # fmt: skip
        readings = {
            wanted[metric]: value
            for metric, value in zip(metrics, values, strict=True)
            if metric in wanted
        }
        epoch = bisect_right(changes.get(host, ()), at)
        samples[host, case, commit][epoch].append(_sample(validity, reasons, readings))
    return dict(samples)


def _add_samples(cell: TriedCell, epochs: _Epochs) -> TriedCell:
    counted = sum(each.counts for samples in epochs.values() for each in samples)
    if cell.trials:
        return replace(cell, other_trials=cell.other_trials + counted)
    measured = [epoch for epoch, samples in epochs.items() if any(each.counts for each in samples)]
    epoch = max(measured or epochs)
    chosen = epochs[epoch]
    other_trials = counted - sum(each.counts for each in chosen)
    return replace(cell, epoch=epoch, samples=(*cell.samples, *chosen), other_trials=other_trials)


def _sample(validity: str, reasons: object, values: Mapping[str, float]) -> Sample:
    return Sample(
        state="measured",
        validity=validity,
        reasons=reasons if isinstance(reasons, list) else [],
        message="",
        values=values,
    )
