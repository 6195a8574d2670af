"""Reconcile detected changes with the stored change points of a series.

A change point that moved keeps its row and state. One that is no longer detected is superseded,
unless a member or a confirmation run has judged it.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from cli.pitwall.units import format_change
from orchestrator.benchmarks.models import Commit
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import HostTransport
from orchestrator.regressions.change_points import add_revision
from orchestrator.regressions.main_line import LinePoint
from orchestrator.results.models import ChangeKind, ChangePoint, ChangeState, Series
from orchestrator.stats.changes import Change, Changes

#: A change among this many latest points is news: it is measured again and may raise an alert.
RECENT = 30
#: When points are added, a change point moves by at most this many of them.
NEAR = 3
#: A refuted change point that returns stronger is measured again at most this often.
MAX_CONFIRMATION_RUNS = 3


def store_changes(
    series: Series,
    line: Sequence[LinePoint],
    scan: Changes,
    *,
    sure_from: int | None,
    is_old: bool = False,
    pending: Collection[int] = (),
) -> None:
    """Store the detected changes. The caller holds the lock of the series.

    `sure_from`: if the line is only the end of a longer one, change points before this position are
    not changed. `is_old`: new change points are no news, even among the latest points. `pending`:
    positions that a backfill will measure. They count as points: whether a change is news does not
    depend on the order in which a backfill measures.
    """
    known = _load_known(series, sure_from)
    changes = [
        each for each in scan.points if sure_from is None or line[each.index].position >= sure_from
    ]
    matched = _match_changes(known, line, changes)
    gone = [row for row in known if row.pk not in {row.pk for row in matched.values()}]
    now_at = {line[change.index].commit for change in changes}
    for row in gone:
        _retire_change(row, displaced=row.commit_id in now_at)
    beside = {place for change in changes for place in (change.index - 1, change.index)}
    commits = Commit.objects.in_bulk([line[place].commit for place in beside])
    moves = [(row, _build_facts(line, changes[number], commits)) for number, row in matched.items()]
    for row, facts in _order_moves(moves):
        _update_change(row, facts)
    for number, change in enumerate(changes):
        if number not in matched:
            facts = _build_facts(line, change, commits)
            is_recent = not is_old and _count_from(line, change, pending) <= RECENT
            _add(series, change, facts, is_recent=is_recent, is_old=is_old)


def _load_known(series: Series, sure_from: int | None) -> list[ChangePoint]:
    """Return the change points that a detection may change, oldest detection first."""
    rows = (
        ChangePoint.objects.filter(series=series)
        .exclude(state=ChangeState.SUPERSEDED)
        .select_related("commit", "before")
        .order_by("found_at")
    )
    return [row for row in rows if not _is_before(row.commit, sure_from)]


def _is_before(commit: Commit, position: int | None) -> bool:
    """Return whether a commit is before `position`; one that a force push removed is not."""
    return position is not None and commit.position is not None and commit.position < position


def _match_changes(
    known: Sequence[ChangePoint], line: Sequence[LinePoint], changes: Sequence[Change]
) -> dict[int, ChangePoint]:
    """Return number of a change → its row: at the same commit, or near it in the same direction."""
    pairs = sorted(
        (distance, number, place)
        for number, change in enumerate(changes)
        for place, row in enumerate(known)
        if (distance := _measure_distance(row, line, change)) is not None
    )
    matches: dict[int, ChangePoint] = {}
    taken: set[int] = set()
    for _, number, place in pairs:
        if number not in matches and place not in taken:
            matches[number] = known[place]
            taken.add(place)
    return matches


def _measure_distance(row: ChangePoint, line: Sequence[LinePoint], change: Change) -> int | None:
    """Return how many points lie between; None if it is another change."""
    if row.regressed != change.regressed:
        return None
    if row.commit_id == line[change.index].commit:
        return 0
    first, last = row.before.position, row.commit.position
    if first is None or last is None:
        return None
    here = line[change.index].position
    low, high = min(here, last), max(here, last)
    between = sum(low < point.position <= high for point in line)
    inside = first < here and line[change.index - 1].position < last
    return between if inside or between <= NEAR else None


def _build_facts(
    line: Sequence[LinePoint], change: Change, commits: dict[int, Commit]
) -> dict[str, Any]:
    return {
        "commit": commits[line[change.index].commit],
        "before": commits[line[change.index - 1].commit],
        "kind": change.kind,
        "change": change.change,
        "low": change.low,
        "high": change.high,
        "p_value": change.p_value,
        "level_before": change.before,
        "level_after": change.after,
        "regressed": change.regressed,
        "seen": True,
    }


def _order_moves(
    moves: list[tuple[ChangePoint, dict[str, Any]]],
) -> Iterable[tuple[ChangePoint, dict[str, Any]]]:
    """Order the moves so that no row moves to a commit that another one still has."""
    waiting = list(moves)
    while waiting:
        held = {row.commit_id for row, _ in waiting}
        free = [
            each
            for each in waiting
            if each[1]["commit"].pk == each[0].commit_id or each[1]["commit"].pk not in held
        ]
        # There can be no cycle: all would have to move past each other.
        nexts = free or waiting[:1]
        yield from nexts
        waiting = [each for each in waiting if each not in nexts]


def _retire_change(row: ChangePoint, *, displaced: bool) -> None:
    """Supersede a row. `displaced`: another change, in the other direction, is at its commit."""
    if not row.seen and not displaced:
        return
    row.seen = False
    if row.state == ChangeState.OPEN or displaced:
        row.state = ChangeState.SUPERSEDED
    add_revision(row, "no longer detected with newer points")
    row.save()


def _update_change(row: ChangePoint, facts: dict[str, Any]) -> None:
    notes = _list_differences(row, facts)
    stronger = row.kind == ChangeKind.CANDIDATE and facts["kind"] == ChangeKind.ALERT
    moved = (row.commit_id, row.before_id) != (facts["commit"].pk, facts["before"].pk)
    for field, value in facts.items():
        setattr(row, field, value)
    if (
        row.state == ChangeState.REFUTED
        and (stronger or moved)
        and row.confirmation_runs < MAX_CONFIRMATION_RUNS
    ):
        row.state, row.final = ChangeState.OPEN, False
        notes.append("will be measured again")
    if notes:
        add_revision(row, "; ".join(notes))
    row.save()


def _list_differences(row: ChangePoint, facts: dict[str, Any]) -> list[str]:
    notes = []
    if not row.seen:
        notes.append("seen again")
    if row.commit_id != facts["commit"].pk:
        notes.append(f"moved from {row.commit.short_sha} to {facts['commit'].short_sha}")
    elif row.before_id != facts["before"].pk:
        notes.append(f"the commit before is {facts['before'].short_sha} now")
    if row.kind != facts["kind"]:
        notes.append("certain now" if facts["kind"] == ChangeKind.ALERT else "no longer certain")
    return notes


def _count_from(line: Sequence[LinePoint], change: Change, pending: Collection[int]) -> int:
    """Return the number of points from a change on, with pending ones."""
    first, known = line[change.index].position, {point.position for point in line}
    return len(line) - change.index + sum(each > first for each in {*pending} - known)


def _add(
    series: Series, change: Change, facts: dict[str, Any], *, is_recent: bool, is_old: bool
) -> ChangePoint:
    message = ""
    if is_old:
        message = "not confirmed: it was imported with a history"
    elif not is_recent:
        message = f"not confirmed: it is before the newest {RECENT} points"
    elif series.host.transport == HostTransport.EXTERNAL:
        message = "not confirmed: measured on an external host"
    row = ChangePoint(
        series=series, recent=is_recent, final=bool(message), message=message, found_at=utc_now(),
        **facts,
    )  # fmt: skip
    add_revision(row, f"detected: {format_change(change.change)}")
    row.save(force_insert=True)
    return row
