"""How long a project keeps its results: reads and changes."""

from dataclasses import asdict, dataclass

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import InvalidRequestError
from orchestrator.results.models import Retention

#: A hundred years.
MOST_DAYS = 36_525
MOST_EVERY = 1_000

_NAMES = {
    "files_days": "raw output",
    "distributions_days": "distributions of single trials",
    "trials_days": "single trials",
    "points_days": "all points",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """Days after the end of a run; None: permanently. `keep_every` only with `points_days`."""

    files_days: int | None
    distributions_days: int | None
    trials_days: int | None
    points_days: int | None
    keep_every: int | None


def load_retention(project: Project) -> Retention:
    """Return the current settings; they may not be stored yet."""
    return Retention.objects.filter(project=project).first() or Retention(project=project)


def save_retention(*, member: Member, project: Project, wanted: RetentionSettings) -> Retention:
    """Store the settings. InvalidRequestError names the field that contradicts the others."""
    member.require(Role.MAINTAINER, to="change how long results are kept")
    _check(wanted)
    with transaction.atomic():
        Retention.objects.get_or_create(project=project)
        # Waits for the batch that is being pruned; the next one uses the new settings.
        held = Retention.objects.select_for_update().get(project=project)
        for name, value in asdict(wanted).items():
            setattr(held, name, value)
        held.next_at = None
        held.save()
        summary = ", ".join(f"{name} {value}" for name, value in asdict(wanted).items())
        record_audit(member=member, action="retention.changed", subject=f"{project}: {summary}")
    return held


def _check(wanted: RetentionSettings) -> None:
    before: tuple[str, int | None] = ("", 1)
    for name, title in _NAMES.items():
        days = getattr(wanted, name)
        earlier, least = before
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise InvalidRequestError(f"{title}: expected 1 to {MOST_DAYS} days", field=name)
        if days is not None and (least is None or days < least):
            kept = "permanently" if least is None else f"for {least} days"
            raise InvalidRequestError(
                f"{title} cannot go before {_NAMES[earlier]}, kept {kept}", field=name
            )
        before = (name, days)
    _check_thinning(wanted)


def _check_thinning(wanted: RetentionSettings) -> None:
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
