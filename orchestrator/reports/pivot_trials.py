"""Reads of the trials of a report, with a fixed number of queries."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from orchestrator.measurements.readings import load_values
from orchestrator.reports.pivot_model import Sample
from orchestrator.reports.report_spec import parse_percentile
from orchestrator.results.models import Histogram, HistogramKind, PointHistogram
from orchestrator.runs.models import Trial
from orchestrator.stats.histogram import Histogram as Distribution
from orchestrator.stats.summary import is_supported

#: (host or None, case, commit)
CellKey = tuple[UUID | None, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCell:
    """The trials of one case of one commit on one host, all under one version of the definition."""

    version: int
    trials: tuple[UUID, ...]
    samples: tuple[Sample, ...]
    merged: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    pk: UUID
    state: str
    validity: str
    reasons: list[str]
    message: str

    @property
    def counts(self) -> bool:
        return self.state == "measured" and self.validity in ("valid", "suspect")


def load_tried_cells(
    trials: QuerySet[Trial],
    keys: Collection[str],
    merged: Collection[str],
    *,
    one_run: bool = False,
) -> dict[CellKey, TriedCell]:
    """Return the trials by cell, of the newest version of the definition that has trials.

    `keys` are the metrics of each trial, `merged` the percentiles over all trials. These include
    trials whose own distributions were removed, except with `one_run`.
    """
    rows = _load_rows(trials)
    counted = [row.pk for _, group in rows.values() for row in group if row.counts]
    values = defaultdict(dict, load_values(counted, keys))
    distributions = _load_distributions(
        counted, {*keys, *merged} - _exclude_percentiles(keys), merged
    )
    _add_percentiles(values, distributions, keys)
    before = _load_merged(rows) if merged and not one_run else {}
    return {
        cell: TriedCell(
            version=version,
            trials=tuple(row.pk for row in group if row.counts),
            samples=tuple(_sample(row, values.get(row.pk, {})) for row in group),
            merged=_compute_percentiles([*before.get((*cell, version), ()),
                            *(distributions[row.pk] for row in group if row.pk in distributions)],
                           merged),
        )
        for cell, (version, group) in rows.items()
    }  # fmt: skip


def _load_rows(trials: QuerySet[Trial]) -> dict[CellKey, tuple[int, list[_Row]]]:
    records = trials.order_by("pk").values_list(
        Coalesce("host_id", "job__host_id"),
        "case_id",
        "variant__commit_id",
        "job__run__definition__version",
        "pk",
        "state",
        "validity",
        "reasons",
        "message",
    )
    cells: dict[CellKey, dict[int, list[_Row]]] = defaultdict(lambda: defaultdict(list))
    for host, case, commit, version, pk, state, validity, reasons, message in records:
        row = _Row(pk=pk, state=state, validity=validity, reasons=reasons, message=message)
        cells[host, case, commit][version].append(row)
    return {cell: _select_newest_version(versions) for cell, versions in cells.items()}


def _select_newest_version(versions: Mapping[int, list[_Row]]) -> tuple[int, list[_Row]]:
    """Return the newest version that was measured; if none was, the newest."""
    measured = [number for number, rows in versions.items() if any(row.counts for row in rows)]
    number = max(measured or versions)
    return number, versions[number]


def _load_merged(
    cells: Mapping[CellKey, tuple[int, list[_Row]]],
) -> dict[tuple[UUID | None, int, int, int], list[Distribution]]:
    """Return merged distributions by (host, case, commit, version of the definition)."""
    histograms = PointHistogram.objects.filter(
        case__in={case for _, case, _ in cells},
        commit__in={commit for _, _, commit in cells},
        kind=HistogramKind.OK,
    ).values_list("host_id", "case_id", "commit_id", "definition__version", "encoded")
    return {
        (host, case, commit, version): [Distribution.decode(bytes(encoded))]
        for host, case, commit, version, encoded in histograms
    }


def _exclude_percentiles(keys: Collection[str]) -> set[str]:
    """Return the keys that are not percentiles: only measurements have them."""
    return {key for key in keys if parse_percentile(key) is None}


def _load_distributions(
    trials: Sequence[UUID], wanted: Collection[str], merged: Collection[str]
) -> dict[UUID, Distribution]:
    """Return the distributions if a percentile needs them: one that is no metric, or a merged
    one."""
    from_trials = [key for key in wanted if _parse_percentile_key(key) not in _MEASURED]
    if not from_trials and not merged:
        return {}
    rows = Histogram.objects.filter(trial__in=trials, kind=HistogramKind.OK)
    return {
        trial: Distribution.decode(bytes(encoded))
        for trial, encoded in rows.values_list("trial_id", "encoded").iterator()
    }


#: Percentiles that are stored as metrics of each trial.
_MEASURED = frozenset({50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99})


def _parse_percentile_key(key: str) -> float:
    percentile = parse_percentile(key)
    assert percentile is not None, key
    return percentile


def _add_percentiles(
    values: dict[UUID, dict[str, float]],
    distributions: Mapping[UUID, Distribution],
    keys: Collection[str],
) -> None:
    wanted = [
        (key, _parse_percentile_key(key)) for key in keys if parse_percentile(key) is not None
    ]
    for trial, distribution in distributions.items():
        for key, percentile in wanted:
            if key not in values[trial] and is_supported(percentile, distribution.total_count):
                values[trial][key] = distribution.percentile(percentile) / 1e6


def _compute_percentiles(
    parts: Sequence[Distribution], wanted: Collection[str]
) -> dict[str, float]:
    if not parts or not wanted:
        return {}
    whole = Distribution.merged(parts)
    return {
        key: whole.percentile(_parse_percentile_key(key)) / 1e6
        for key in wanted
        if is_supported(_parse_percentile_key(key), whole.total_count)
    }


def _sample(row: _Row, values: Mapping[str, float]) -> Sample:
    return Sample(
        state=row.state,
        validity=row.validity,
        reasons=row.reasons,
        message=row.message,
        values=values,
    )
