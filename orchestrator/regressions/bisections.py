"""Search for the commit that caused a confirmed regression, among commits that were not measured.

Each step is a run of an intermediate commit against the last good one, in the case that shows the
change best. The row of the bisection stores all answers, so that a restart loses nothing. The
search follows first parents. If it ends at a merge, it continues among the merged commits.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from cli.pitwall.units import format_percent
from orchestrator.accounts.members import build_system_member
from orchestrator.benchmarks.models import Commit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import PitwallError
from orchestrator.regressions.bisection_answers import (
    choose_next_step,
    compute_chances,
    count_step_blocks,
    load_effect,
    read_partial_level,
    read_share,
)
from orchestrator.regressions.change_points import add_revision
from orchestrator.regressions.commit_paths import (
    find_merged_path,
    find_path_between,
    load_path_commits,
)
from orchestrator.regressions.confirmation_readings import (
    find_unbuildable,
    read_confirmation_run,
)
from orchestrator.regressions.confirmation_runs import TooLittleTimeError, start_run
from orchestrator.regressions.machine_time import compute_left_s, is_at_it
from orchestrator.regressions.pending_backfills import is_backfilled
from orchestrator.results.models import Bisection, BisectionState, ChangePoint, ChangeState
from orchestrator.runs.models import Run, Trigger
from orchestrator.runs.states import RUN_ENDED
from orchestrator.stats.bisection import (
    Culprit,
    NextMeasurement,
    count_most_steps,
    find_credible_range,
    read_answer,
)
from orchestrator.stats.culprit_share import Blame, CulpritShare, PartialLevel

logger = logging.getLogger(__name__)

#: Longer paths are not searched.
MOST_COMMITS = 1_000
#: A bisection ends after this many steps without a measurement.
MOST_FAILURES = 3


def advance_bisections(now: datetime) -> None:
    """Start bisections, store answers and start next steps.

    May run twice: each step claims its row.
    """
    _share_culprits()
    for row in _find_searchable():
        _run_guarded(begin, row.pk)
    for search in Bisection.objects.filter(state=BisectionState.RUNNING).order_by("pk"):
        _run_guarded(advance, search.pk, now)


def begin(change_id: UUID) -> Bisection | None:
    """Start the bisection of a confirmed change point; None if there is none to make.

    It waits for a backfill that measures commits in between. A change between two neighbouring
    commits has its culprit without a bisection.
    """
    with transaction.atomic():
        rows = _load_changes(pk=change_id).select_for_update(of=("self",), skip_locked=True)
        row = rows.filter(state=ChangeState.CONFIRMED, culprit=None, bisections=None).first()
        if row is None or is_backfilled([row.series], row.before, row.commit):
            return None
        path = find_path_between(row.before, row.commit)
        return _begin_bisection(row, row.before, path)


def advance(search_id: UUID, now: datetime) -> None:
    """Store the answer of an ended step, and start the next one."""
    with transaction.atomic():
        search = (
            Bisection.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related(
                "run", "good",
                "change_point__series__benchmark__project__team",
                "change_point__series__host",
                "change_point__series__case",
                "change_point__series__metric",
            )
            .filter(pk=search_id, state=BisectionState.RUNNING)
            .first()
        )  # fmt: skip
        if search is None or (search.run is not None and search.run.state not in RUN_ENDED):
            return
        if search.run is not None:
            _ingest_answer(search, search.run)
        if search.state == BisectionState.RUNNING:
            _continue_bisection(search, now)
        search.save()


def _begin_bisection(row: ChangePoint, good: Commit, path: list[str]) -> Bisection | None:
    if len(path) == 1:
        _name_culprit(row, load_path_commits(row, path)[0])
        return None
    if not path or len(path) > MOST_COMMITS:
        add_revision(row, f"no bisection: {len(path)} commits are in between")
        row.save()
        return None
    search = Bisection.objects.create(change_point=row, good=good, path=path)
    add_revision(row, f"bisecting {len(path)} commits")
    row.save()
    return search


def _ingest_answer(search: Bisection, run: Run) -> None:
    """Store the result of a step's run: an answer, a commit that cannot be built, or a failure."""
    row = search.change_point
    variant = run.variants.select_related("commit").get(position=1)
    index = search.path.index(variant.commit.sha)
    broken = find_unbuildable(run)
    outcome = read_confirmation_run(run, row.series)
    answer = read_answer(index, outcome) if outcome is not None else None
    search.run = None
    if answer is not None:
        entry = {**asdict(answer), "run": str(run.pk)}
        search.answers = [*search.answers, entry]
    elif variant.commit_id in broken and search.good_id not in broken:
        search.unbuildable = sorted({*search.unbuildable, index})
    else:
        failures = [*search.failures, str(run.pk)]
        search.failures = failures
        why = run.message or "none of their blocks is valid"
        if len(failures) >= MOST_FAILURES:
            _finish_bisection(
                search, BisectionState.STOPPED, f"{MOST_FAILURES} steps measured nothing: {why}"
            )


def _continue_bisection(search: Bisection, now: datetime) -> None:
    row = search.change_point
    partial = read_partial_level(search)
    if partial is not None:
        _finish_bisection(search, BisectionState.PART, _describe_partial(search, partial))
        return
    step = choose_next_step(search)
    is_exhausted = len(search.answers) >= count_most_steps(len(search.path))
    if isinstance(step, Culprit):
        again = None if is_exhausted else _find_unclear_commit(search, step)
        if again is None:
            _end_bisection(search, step)
            return
        step = NextMeasurement(index=again)
    if is_exhausted:
        span = find_credible_range(compute_chances(search))
        _finish_bisection(
            search,
            BisectionState.BETWEEN,
            f"undecided: {_format_commit_range(search, span[0], span[-1])}",
        )
        return
    project, host = row.series.benchmark.project, row.series.host
    if not project.bisect_changes:
        _finish_bisection(
            search, BisectionState.STOPPED, "the project's settings disable bisection"
        )
    elif is_at_it(host):
        search.message = f"waits for another confirmation run on {host.name}"
    elif compute_left_s(project, now) <= 0:
        minutes = project.machine_minutes_a_day
        search.message = f"waits: today's {minutes} minutes of machine time are used up"
    else:
        _start_step(search, step, compute_left_s(project, now))


def _find_unclear_commit(search: Bisection, culprit: Culprit) -> int | None:
    """Return the commit to measure again to decide whether the culprit has all of the change."""
    if culprit.first != culprit.last:
        return None
    share = read_share(search, culprit)
    is_buildable = share.weakest is not None and share.weakest not in search.unbuildable
    return share.weakest if share.blame is Blame.OPEN and is_buildable else None


def _start_step(search: Bisection, step: NextMeasurement, budget_s: float) -> None:
    row = search.change_point
    commit = load_path_commits(row, [search.path[step.index]])[0]
    try:
        with transaction.atomic():
            search.run = start_run(
                member=build_system_member(row.series.benchmark.project.team),
                series=[row.series],
                good=search.good,
                commit=commit,
                trigger=Trigger.BISECT,
                budget_s=budget_s,
                rounds=count_step_blocks(row),
            )
    except TooLittleTimeError as error:
        search.message = f"waits: {error}"
        return
    except PitwallError as error:
        _finish_bisection(
            search, BisectionState.STOPPED, f"{commit.short_sha} cannot be measured: {error}"
        )
        return
    search.message = f"measures {commit.short_sha}, {step.index + 1} of {len(search.path)}"


def _end_bisection(search: Bisection, culprit: Culprit) -> None:
    row = search.change_point
    if culprit.first != culprit.last:
        why = _format_commit_range(search, culprit.first, culprit.last)
        _finish_bisection(
            search, BisectionState.BETWEEN, f"{why}: the commits in between cannot be built"
        )
        return
    commit = load_path_commits(row, [search.path[culprit.first]])[0]
    share = read_share(search, culprit)
    if share.blame is not Blame.ALL:
        _finish_bisection(search, BisectionState.PART, _describe_part(commit, share))
        return
    _finish_bisection(
        search,
        BisectionState.FOUND,
        f"{commit.short_sha}, with a probability of {format_percent(culprit.probability)}",
    )
    merged = find_merged_path(commit)
    if merged is not None and not row.bisections.filter(good=merged.base).exists():
        # The merge has the change and its first parent does not: the change came with the merged
        # commits.
        Bisection.objects.create(
            change_point=row, good=merged.base, path=[*merged.path, commit.sha]
        )
        add_revision(row, f"{commit.short_sha} is a merge: bisecting the merged commits")
        row.save()
        return
    _name_culprit(row, commit)


def _describe_partial(search: Bisection, partial: PartialLevel) -> str:
    low, high = (format_percent(each, digits=2) for each in partial.interval)
    return (
        f"{search.path[partial.index][:10]} has {low} to {high} of the change: a part comes with "
        "it or before it, and the rest after it"
    )


def _describe_part(commit: Commit, share: CulpritShare) -> str:
    low, high = (format_percent(each, digits=2) for each in share.interval)
    if share.blame is Blame.OPEN:
        return f"{commit.short_sha} has {low} to {high} of the change; a part may be elsewhere"
    return f"{commit.short_sha} has {low} to {high} of the change; the rest is in other commits"


def _name_culprit(row: ChangePoint, commit: Commit) -> None:
    """Set the culprit of a change point, and of other cases and metrics that it explains."""
    place = commit.position if commit.position is not None else row.commit.position
    others = _load_changes(
        series__benchmark=row.series.benchmark_id,
        series__host=row.series.host_id,
        regressed=row.regressed,
        state=ChangeState.CONFIRMED,
        culprit=None,
        before__position__lt=place,
        commit__position__gte=place,
    )
    for each in [row, *others.exclude(pk=row.pk)]:
        each.culprit = commit
        add_revision(each, f"caused by {commit.short_sha}")
        each.save()


def _finish_bisection(search: Bisection, state: BisectionState, message: str) -> None:
    search.state, search.message, search.ended_at = state, message[:2000], utc_now()
    if state != BisectionState.FOUND:
        add_revision(search.change_point, f"the bisection ended: {message}"[:500])
        search.change_point.save()


def _format_commit_range(search: Bisection, first: int, last: int) -> str:
    before = search.path[first - 1] if first else search.good.sha
    return f"between {before[:10]} and {search.path[last][:10]}"


def _share_culprits() -> None:
    """Share the culprit with change points that were confirmed after the bisection."""
    rows = _load_changes(state=ChangeState.CONFIRMED, regressed=True, culprit=None)
    for row in rows.filter(before__position__isnull=False, commit__position__isnull=False):
        known = ChangePoint.objects.filter(
            series__benchmark=row.series.benchmark_id,
            series__host=row.series.host_id,
            state=ChangeState.CONFIRMED,
            regressed=True,
            culprit__position__gt=row.before.position,
            culprit__position__lte=row.commit.position,
        )
        change = known.select_related("culprit").order_by("pk").first()
        if change is not None and change.culprit is not None:
            row.culprit = change.culprit
            add_revision(row, f"caused by {change.culprit.short_sha}")
            row.save()


def _find_searchable() -> list[ChangePoint]:
    """Return confirmed regressions without a culprit: the clearest one of each confirmation run.

    One bisection per confirmation run is enough: it finds the culprit of all its change points.
    """
    searched = Bisection.objects.filter(change_point__run__isnull=False)
    rows = _load_changes(
        state=ChangeState.CONFIRMED,
        regressed=True,
        culprit=None,
        series__benchmark__project__bisect_changes=True,
    ).exclude(run__in=searched.values("change_point__run"))
    clearest: dict[UUID | None, ChangePoint] = {}
    for row in sorted(rows, key=_compute_relative_error):
        clearest.setdefault(row.run_id, row)
    return list(clearest.values())


def _compute_relative_error(row: ChangePoint) -> float:
    effect, error = load_effect(row)
    return error / abs(effect) if effect else math.inf


def _load_changes(**which: object) -> QuerySet[ChangePoint]:
    return ChangePoint.objects.filter(series__benchmark__deleted_at=None, **which).select_related(
        "series__benchmark__project__team", "series__host", "series__case", "series__metric",
        "commit", "before",
    )  # fmt: skip


def _run_guarded(step: Callable[..., object], *given: object) -> None:
    """An error in one bisection must not stop the others."""
    try:
        step(*given)
    except Exception:
        logger.exception("a bisection cannot be processed: %s", given)
