"""Reads of the audit log: filtered, and as rows of a file."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from django.db.models import Q, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import AuditEntry, Role
from orchestrator.core.spreadsheets import csv_text

Writer = Callable[[QuerySet[AuditEntry]], Iterator[str]]
COLUMNS = ("at", "actor", "token", "action", "subject")
#: Rows that are read at once: a log of years never is in memory.
_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """What is asked for; both days are included, in UTC.

    `action` is one such as `host.added`, or the first part of several such as `host`; `actor` is
    a user name, or `Pitwall` for what it did by itself.
    """

    actor: str = ""
    action: str = ""
    text: str = ""
    since: date | None = None
    until: date | None = None

    def condition(self) -> Q:
        found = Q()
        if self.actor:
            found &= Q(actor_name="" if self.actor == "Pitwall" else self.actor)
        if self.action:
            found &= Q(action=self.action) | Q(action__startswith=f"{self.action}.")
        if self.text:
            found &= Q(subject__icontains=self.text)
        if self.since:
            found &= Q(at__gte=datetime.combine(self.since, time.min, UTC))
        if self.until:
            found &= Q(at__lte=datetime.combine(self.until, time.max, UTC))
        return found


def audit_of(member: Member, asked: AuditFilter | None = None) -> QuerySet[AuditEntry]:
    """Newest first. For maintainers: it tells who did what, and names what is no more."""
    member.require(Role.MAINTAINER, to="read the audit log")
    rows = AuditEntry.objects.filter(team=member.team)
    return rows.filter(asked.condition() if asked else Q()).order_by("-at", "-pk")


def actors_of(member: Member) -> list[str]:
    """Who is named in the log."""
    rows = audit_of(member).order_by("actor_name").values_list("actor_name", flat=True).distinct()
    return [name or "Pitwall" for name in rows]


def actions_of(member: Member) -> list[str]:
    """The first parts of the actions in the log, such as `host`."""
    rows = audit_of(member).order_by("action").values_list("action", flat=True).distinct()
    return sorted({action.split(".")[0] for action in rows})


def as_csv(rows: QuerySet[AuditEntry]) -> Iterator[str]:
    yield csv_text([COLUMNS])
    for entry in rows.iterator(_AT_ONCE):
        yield csv_text([list(told(entry).values())])


def as_json_lines(rows: QuerySet[AuditEntry]) -> Iterator[str]:
    for entry in rows.iterator(_AT_ONCE):
        yield json.dumps(told(entry), ensure_ascii=False) + "\n"


def told(entry: AuditEntry) -> dict[str, str]:
    """The entry as it is exported; what Pitwall did by itself has an empty actor."""
    return {
        "at": entry.at.isoformat(),
        "actor": entry.actor_name,
        "token": entry.token,
        "action": entry.action,
        "subject": entry.subject,
    }
