"""Reads of the trials of a report, with a fixed number of queries."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from orchestrator.fleet.models import HostChange
from orchestrator.measurements.comparability import hash_block, hash_build, hash_run
from orchestrator.measurements.readings import load_values
from orchestrator.reports.pivot_model import FEWEST_VALID, Sample
from orchestrator.reports.spec_fields import parse_percentile
from orchestrator.results.models import Histogram, HistogramKind, PointHistogram
from orchestrator.runs.models import UNTIL_OF_CONTESTS, Trial
from orchestrator.runs.states import Validity, is_counted
from orchestrator.stats.histogram import Histogram as Distribution
from orchestrator.stats.summary import is_supported

#: (host or None, case, commit)
CellKey = tuple[UUID | None, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCell:
    """The trials of one case of one commit on one host that were measured in the same way.

    They have one version of the definition, one epoch of the host, one version of the load `tool`
    and of other repositories: the newest. `other_trials`: the number of others that would count.
    """

    version: int
    epoch: int
    tool: str
    trials: tuple[UUID, ...]
    samples: tuple[Sample, ...]
    merged: Mapping[str, float]
    other_trials: int = 0


class _Kind(NamedTuple):
    """Trials are combined only if these are equal. They are in the order of their importance.

    `newest`: when the newest job of this kind was requested.
    """

    version: int
    epoch: int
    newest: datetime
    tool: str
    repositories: str


class _Row(NamedTuple):
    """The last columns of the query in `_load_groups`, in their order.

    `excluded`: the trial is suspect, and the report excludes it.
    """

    pk: UUID
    run: UUID
    state: str
    validity: str
    reasons: list[str]
    message: str
    job: UUID
    round: int
    position: int
    build: str | None
    until: str
    excluded: bool = False

    @property
    def counts(self) -> bool:
        return is_counted(self.state, self.validity) and not self.excluded


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The newest kind of trials of a cell. `other_trials`: how many of the other kinds count.

    `alone`: there is no other kind, the host never changed, and no trial is excluded.
    """

    kind: _Kind
    rows: list[_Row]
    other_trials: int
    alone: bool


def load_tried_cells(
    trials: QuerySet[Trial],
    keys: Collection[str],
    merged: Collection[str],
    *,
    one_run: bool = False,
    exclude_suspects: bool = False,
) -> dict[CellKey, TriedCell]:
    """Return the trials by cell, of the newest kind that has trials (`TriedCell`).

    `exclude_suspects`: suspect trials do not count in a cell with FEWEST_VALID valid ones.

    `keys` are the metrics of each trial, `merged` the percentiles over all trials. These include
    trials whose own distributions were removed, except with `one_run`. Their kind is not known, so
    they are left out if there may be several.
    """
    groups = _load_groups(trials)
    if exclude_suspects:
        groups = {cell: _exclude_suspects(group) for cell, group in groups.items()}
    counted = [row.pk for group in groups.values() for row in group.rows if row.counts]
    values = defaultdict(dict, load_values(counted, keys))
    distributions = _load_distributions(
        counted, {*keys, *merged} - _exclude_percentiles(keys), merged
    )
    _add_percentiles(values, distributions, keys)
    alone = [cell for cell, group in groups.items() if group.alone]
    before = _load_merged(alone) if merged and not one_run else {}
    return {
        cell: TriedCell(
            version=group.kind.version,
            epoch=group.kind.epoch,
            tool=group.kind.tool,
            trials=tuple(row.pk for row in group.rows if row.counts),
            samples=tuple(_sample(row, values.get(row.pk, {})) for row in group.rows),
            merged=_compute_percentiles(
                [
                    *before.get((*cell, group.kind.version), ()),
                    *(distributions[row.pk] for row in group.rows if row.pk in distributions),
                ],
                merged,
            ),
            other_trials=group.other_trials,
        )
        for cell, group in groups.items()
    }


def _load_groups(trials: QuerySet[Trial]) -> dict[CellKey, _Group]:
    records = trials.order_by("job__created_at", "pk").values_list(
        Coalesce("host_id", "job__host_id"),
        "case_id",
        "variant__commit_id",
        "job__run__definition__version",
        "provenance__tool",
        "provenance__repositories",
        "job__created_at",
        Coalesce("job__snapshot__taken_at", "started_at", "job__created_at"),
        "pk",
        "job__run_id",
        "state",
        "validity",
        "reasons",
        "message",
        "job",
        "round",
        "position",
        "provenance__build__digest",
        "job__run__until",
    )
    hosts = trials.order_by().values(on=Coalesce("host_id", "job__host_id")).distinct()
    changes = load_change_times(hosts)
    cells: dict[CellKey, dict[tuple[object, ...], list[_Row]]] = defaultdict(dict)
    kinds: dict[tuple[object, ...], _Kind] = {}
    for host, case, commit, version, tool, others, created_at, at, *columns in records:
        epoch = bisect_right(changes.get(host, ()), at)
        names = _name_tools(tool, others)
        key = (host, case, commit, version, epoch, *names)
        kinds[key] = _Kind(version, epoch, created_at, *names)
        cells[host, case, commit].setdefault(key, []).append(_Row(*columns))
    return {
        cell: _select_newest(
            [(kinds[key], rows) for key, rows in groups.items()], changed=cell[0] in changes
        )
        for cell, groups in cells.items()
    }


def _name_tools(tool: object, others: object) -> tuple[str, str]:
    """Return the load tool with its version, and the commits of other repositories."""
    known = tool if isinstance(tool, dict) else {}
    pins = others if isinstance(others, dict) else {}
    name = " ".join(str(known[key]) for key in ("name", "version") if known.get(key))
    return name, ", ".join(f"{each} {pin['sha']}" for each, pin in sorted(pins.items()))


def load_change_times(hosts: QuerySet[Any, Any]) -> dict[UUID | None, list[datetime]]:
    """Return when each of these hosts changed, oldest first; each change begins an epoch.

    `hosts` selects their ids.
    """
    changes: dict[UUID | None, list[datetime]] = defaultdict(list)
    rows = HostChange.objects.filter(host__in=hosts).order_by("at").values_list("host_id", "at")
    for host, at in rows:
        changes[host].append(at)
    return changes


def _select_newest(groups: Sequence[tuple[_Kind, list[_Row]]], *, changed: bool) -> _Group:
    """Return the newest kind that was measured; if none was, the newest.

    `changed`: the host changed at some time. A trial that failed or waits has no tool yet. It
    belongs to this kind if all else is equal.
    """
    measured = [each for each in groups if any(row.counts for row in each[1])]
    kind, _ = max(measured or groups, key=lambda each: each[0])
    rows = [
        row
        for other, every in groups
        for row in every
        if other == kind or (other[:2] == kind[:2] and not other.tool and not row.counts)
    ]
    counted = sum(row.counts for _, every in groups for row in every)
    others = counted - sum(row.counts for row in rows)
    return _Group(kind=kind, rows=rows, other_trials=others, alone=not (changed or others))


def _exclude_suspects(group: _Group) -> _Group:
    """Return the group without its suspect trials, if enough valid ones remain."""
    counted = [row for row in group.rows if row.counts]
    valid = sum(row.validity == Validity.VALID for row in counted)
    if valid < FEWEST_VALID or valid == len(counted):
        return group
    rows = [row._replace(excluded=row.validity == Validity.SUSPECT) for row in group.rows]
    return replace(group, rows=rows, alone=False)


def _load_merged(
    cells: Collection[CellKey],
) -> dict[tuple[UUID | None, int, int, int], list[Distribution]]:
    """Return merged distributions by (host, case, commit, version of the definition)."""
    wanted = set(cells)
    histograms = PointHistogram.objects.filter(
        case__in={case for _, case, _ in wanted},
        commit__in={commit for _, _, commit in wanted},
        kind=HistogramKind.OK,
    ).values_list("host_id", "case_id", "commit_id", "definition__version", "encoded")
    return {
        (host, case, commit, version): [Distribution.decode(bytes(encoded))]
        for host, case, commit, version, encoded in histograms
        if (host, case, commit) in wanted
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
        run=hash_run(row.run),
        block=hash_block(row.job, row.round),
        place=row.position + 1,
        build=hash_build(row.build or ""),
        interim=row.until in UNTIL_OF_CONTESTS,
        excluded=row.excluded,
    )
