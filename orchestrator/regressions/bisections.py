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
from orchestrator.accounts.members import by_itself
from orchestrator.benchmarks.models import Commit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import PitwallError
from orchestrator.regressions.bisection_answers import blocks_of, chances_of, effect_of, step_of
from orchestrator.regressions.change_points import note_revision
from orchestrator.regressions.commit_paths import commits_of, path_between, path_merged
from orchestrator.regressions.confirmation_readings import (
    as_answer,
    cannot_be_built,
    read_confirmation_run,
)
from orchestrator.regressions.confirmation_runs import TooLittleTimeError, start_run
from orchestrator.regressions.machine_time import is_at_it, left_s
from orchestrator.results.models import Bisection, BisectionState, ChangePoint, ChangeState
from orchestrator.runs.models import Run, Trigger
from orchestrator.runs.states import RUN_ENDED
from orchestrator.stats.bisection import Ask, Found, credible

logger = logging.getLogger(__name__)

#: Longer paths are not searched.
MOST_COMMITS = 1_000
#: A bisection ends after twice the steps that a search without noise needs, and these in addition.
SPARE_STEPS = 6
#: A bisection ends after this many steps without a measurement.
MOST_FAILURES = 3


def tick(now: datetime) -> None:
    """Start bisections, store answers and start next steps.

    May run twice: each step claims its row.
    """
    _share_culprits()
    for row in _to_search():
        _guarded(begin, row.pk)
    for search in Bisection.objects.filter(state=BisectionState.RUNNING).order_by("pk"):
        _guarded(advance, search.pk, now)


def begin(change_id: UUID) -> Bisection | None:
    """Start the bisection of a confirmed change point; None if there is none to make.

    A change between two neighbouring commits has its culprit without a bisection.
    """
    with transaction.atomic():
        rows = _changes(pk=change_id).select_for_update(of=("self",), skip_locked=True)
        row = rows.filter(state=ChangeState.CONFIRMED, culprit=None, bisections=None).first()
        if row is None:
            return None
        path = path_between(row.before, row.commit)
        return _begin(row, row.before, path)


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
            _take_in(search, search.run)
        if search.state == BisectionState.RUNNING:
            _go_on(search, now)
        search.save()


def _begin(row: ChangePoint, good: Commit, path: list[str]) -> Bisection | None:
    if len(path) == 1:
        _name_culprit(row, commits_of(row, path)[0])
        return None
    if not path or len(path) > MOST_COMMITS:
        note_revision(row, f"no bisection: {len(path)} commits are in between")
        row.save()
        return None
    search = Bisection.objects.create(change_point=row, good=good, path=path)
    note_revision(row, f"bisecting {len(path)} commits")
    row.save()
    return search


def _take_in(search: Bisection, run: Run) -> None:
    """Store the result of a step's run: an answer, a commit that cannot be built, or a failure."""
    row = search.change_point
    variant = run.variants.select_related("commit").get(position=1)
    index = search.path.index(variant.commit.sha)
    broken = cannot_be_built(run)
    outcome = read_confirmation_run(run, row.series)
    answer = as_answer(index, outcome) if outcome is not None else None
    search.run = None
    if answer is not None:
        told = {**asdict(answer), "run": str(run.pk)}
        search.answers = [*search.answers, told]
    elif variant.commit_id in broken and search.good_id not in broken:
        search.unbuildable = sorted({*search.unbuildable, index})
    else:
        failures = [*search.failures, str(run.pk)]
        search.failures = failures
        why = run.message or "none of their blocks is valid"
        if len(failures) >= MOST_FAILURES:
            _end(search, BisectionState.STOPPED, f"{MOST_FAILURES} steps measured nothing: {why}")


def _go_on(search: Bisection, now: datetime) -> None:
    row = search.change_point
    step = step_of(search)
    if isinstance(step, Found):
        _ended(search, step)
        return
    if len(search.answers) >= 2 * math.ceil(math.log2(len(search.path))) + SPARE_STEPS:
        span = credible(chances_of(search))
        _end(search, BisectionState.BETWEEN, f"undecided: {_between(search, span[0], span[-1])}")
        return
    project, host = row.series.benchmark.project, row.series.host
    if not project.bisect_changes:
        _end(search, BisectionState.STOPPED, "the project's settings disable bisection")
    elif is_at_it(host):
        search.message = f"waits for another confirmation run on {host.name}"
    elif left_s(project, now) <= 0:
        minutes = project.machine_minutes_a_day
        search.message = f"waits: today's {minutes} minutes of machine time are used up"
    else:
        _ask(search, step, left_s(project, now))


def _ask(search: Bisection, step: Ask, budget_s: float) -> None:
    row = search.change_point
    commit = commits_of(row, [search.path[step.index]])[0]
    try:
        with transaction.atomic():
            search.run = start_run(
                member=by_itself(row.series.benchmark.project.team),
                series=[row.series],
                good=search.good,
                commit=commit,
                trigger=Trigger.BISECT,
                budget_s=budget_s,
                rounds=blocks_of(row),
            )
    except TooLittleTimeError as error:
        search.message = f"waits: {error}"
        return
    except PitwallError as error:
        _end(search, BisectionState.STOPPED, f"{commit.short_sha} cannot be measured: {error}")
        return
    search.message = f"measures {commit.short_sha}, {step.index + 1} of {len(search.path)}"


def _ended(search: Bisection, found: Found) -> None:
    row = search.change_point
    if found.first != found.last:
        why = _between(search, found.first, found.last)
        _end(search, BisectionState.BETWEEN, f"{why}: the commits in between cannot be built")
        return
    commit = commits_of(row, [search.path[found.first]])[0]
    _end(
        search,
        BisectionState.FOUND,
        f"{commit.short_sha}, with a probability of {format_percent(found.probability)}",
    )
    merged = path_merged(commit)
    if merged is not None and not row.bisections.filter(good=merged.base).exists():
        # The merge has the change and its first parent does not: the change came with the merged
        # commits.
        Bisection.objects.create(
            change_point=row, good=merged.base, path=[*merged.path, commit.sha]
        )
        note_revision(row, f"{commit.short_sha} is a merge: bisecting the merged commits")
        row.save()
        return
    _name_culprit(row, commit)


def _name_culprit(row: ChangePoint, commit: Commit) -> None:
    """Set the culprit of a change point, and of other cases and metrics that it explains."""
    place = commit.position if commit.position is not None else row.commit.position
    others = _changes(
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
        note_revision(each, f"caused by {commit.short_sha}")
        each.save()


def _end(search: Bisection, state: BisectionState, message: str) -> None:
    search.state, search.message, search.ended_at = state, message[:2000], utc_now()
    if state != BisectionState.FOUND:
        note_revision(search.change_point, f"the bisection ended: {message}"[:500])
        search.change_point.save()


def _between(search: Bisection, first: int, last: int) -> str:
    before = search.path[first - 1] if first else search.good.sha
    return f"between {before[:10]} and {search.path[last][:10]}"


def _share_culprits() -> None:
    """Share the culprit with change points that were confirmed after the bisection."""
    rows = _changes(state=ChangeState.CONFIRMED, regressed=True, culprit=None)
    for row in rows.filter(before__position__isnull=False, commit__position__isnull=False):
        known = ChangePoint.objects.filter(
            series__benchmark=row.series.benchmark_id,
            series__host=row.series.host_id,
            state=ChangeState.CONFIRMED,
            regressed=True,
            culprit__position__gt=row.before.position,
            culprit__position__lte=row.commit.position,
        )
        found = known.select_related("culprit").order_by("pk").first()
        if found is not None and found.culprit is not None:
            row.culprit = found.culprit
            note_revision(row, f"caused by {found.culprit.short_sha}")
            row.save()


def _to_search() -> list[ChangePoint]:
    """Return confirmed regressions without a culprit: the clearest one of each confirmation run.

    One bisection per confirmation run is enough: it finds the culprit of all its change points.
    """
    searched = Bisection.objects.filter(change_point__run__isnull=False)
    rows = _changes(
        state=ChangeState.CONFIRMED,
        regressed=True,
        culprit=None,
        series__benchmark__project__bisect_changes=True,
    ).exclude(run__in=searched.values("change_point__run"))
    clearest: dict[UUID | None, ChangePoint] = {}
    for row in sorted(rows, key=_vagueness):
        clearest.setdefault(row.run_id, row)
    return list(clearest.values())


def _vagueness(row: ChangePoint) -> float:
    effect, error = effect_of(row)
    return error / abs(effect) if effect else math.inf


def _changes(**which: object) -> QuerySet[ChangePoint]:
    return ChangePoint.objects.filter(**which).select_related(
        "series__benchmark__project__team", "series__host", "series__case", "series__metric",
        "commit", "before",
    )  # fmt: skip


def _guarded(step: Callable[..., object], *given: object) -> None:
    """An error in one bisection must not stop the others."""
    try:
        step(*given)
    except Exception:
        logger.exception("a bisection cannot be processed: %s", given)
