"""How long a project keeps what was measured: reads and changes of it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.models import Benchmark, Project
from orchestrator.core.errors import InvalidRequestError
from orchestrator.results.models import Retention
from orchestrator.results.recording.incoming import ResultIn

#: A hundred years.
MOST_DAYS = 36_525
MOST_EVERY = 1_000
ONE_DAY = timedelta(days=1)

_NAMES = {
    "files_days": "raw output",
    "distributions_days": "distributions of single trials",
    "trials_days": "single trials",
    "points_days": "all points",
}

#: Each post of results asks it.
_TRIALS_DAYS = """
SELECT project_id, trials_days FROM results_retention
WHERE project_id = ANY(%s) AND trials_days IS NOT NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Days after the end of a run; None is for ever. `keep_every` only with `points_days`."""

    files_days: int | None
    distributions_days: int | None
    trials_days: int | None
    points_days: int | None
    keep_every: int | None


def retention_of(project: Project) -> Retention:
    """What holds now; it may not be stored yet."""
    return Retention.objects.filter(project=project).first() or Retention(project=project)


def save_retention(*, member: Member, project: Project, wanted: Wanted) -> Retention:
    """InvalidRequestError names the field that the others forbid."""
    member.require(Role.MAINTAINER, to="change how long results are kept")
    _check(wanted)
    with transaction.atomic():
        Retention.objects.get_or_create(project=project)
        # Waits for the batch that is being pruned; the next one follows the new settings.
        held = Retention.objects.select_for_update().get(project=project)
        for name, value in asdict(wanted).items():
            setattr(held, name, value)
        held.look_at = None
        held.save()
        told = ", ".join(f"{name} {value}" for name, value in asdict(wanted).items())
        record_audit(member=member, action="retention.changed", subject=f"{project}: {told}")
    return held


def faults_of_age(
    benchmarks: Sequence[Benchmark], results: Sequence[ResultIn], now: datetime
) -> dict[int, str]:
    """Place → why a result is too old to be taken in: single results of its time are not kept any
    more, so that nobody can tell whether it was taken before."""
    old = {
        place: benchmark.project_id
        for place, (benchmark, result) in enumerate(zip(benchmarks, results, strict=True))
        if result.at is not None and now - result.at > ONE_DAY
    }
    if not old:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_TRIALS_DAYS, [[*{*old.values()}]])
        days = dict(cursor.fetchall())
    return {
        place: f"it is older than the {days[project]} days for which its project keeps single "
        "results: whether it was taken before cannot be told any more"
        for place, project in old.items()
        if project in days and now - results[place].at > days[project] * ONE_DAY  # type: ignore[operator]
    }


def _check(wanted: Wanted) -> None:
    before: tuple[str, int | None] = ("", 1)
    for name, title in _NAMES.items():
        days = getattr(wanted, name)
        earlier, least = before
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise InvalidRequestError(f"{title}: expected 1 to {MOST_DAYS} days", field=name)
        if days is not None and (least is None or days < least):
            kept = "for ever" if least is None else f"for {least} days"
            raise InvalidRequestError(
                f"{title} cannot go before {_NAMES[earlier]}, kept {kept}", field=name
            )
        before = (name, days)
    _check_thinning(wanted)


def _check_thinning(wanted: Wanted) -> None:
    every = wanted.keep_every
    if (every is None) != (wanted.points_days is None):
        missing = "keep_every" if every is None else "points_days"
        raise InvalidRequestError(
            "points are thinned out after some days to every n-th commit: give both or neither",
            field=missing,
        )
    if every is not None and not 2 <= every <= MOST_EVERY:
        raise InvalidRequestError(
            f"expected a number of commits from 2 to {MOST_EVERY}", field="keep_every"
        )
