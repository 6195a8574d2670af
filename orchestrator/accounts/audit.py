"""Reads of the audit log: filtered, and as rows of a file."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from django.db.models import Q, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import AuditEntry, Role
from orchestrator.core.spreadsheets import render_csv

Writer = Callable[[QuerySet[AuditEntry]], Iterator[str]]
COLUMNS = ("at", "actor", "token", "action", "subject")
#: Rows per batch: a log of years is never in memory as a whole.
_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """A filter of the audit log; both days are included, in UTC.

    `action` is an action such as `host.added`, or its first part such as `host`; `actor` is a
    username, or `Pitwall` for automatic actions.
    """

    actor: str = ""
    action: str = ""
    text: str = ""
    since: date | None = None
    until: date | None = None

    def condition(self) -> Q:
        condition = Q()
        if self.actor:
            condition &= Q(actor_name="" if self.actor == "Pitwall" else self.actor)
        if self.action:
            condition &= Q(action=self.action) | Q(action__startswith=f"{self.action}.")
        if self.text:
            condition &= Q(subject__icontains=self.text)
        if self.since:
            condition &= Q(at__gte=datetime.combine(self.since, time.min, UTC))
        if self.until:
            condition &= Q(at__lte=datetime.combine(self.until, time.max, UTC))
        return condition


def load_audit_entries(member: Member, filters: AuditFilter | None = None) -> QuerySet[AuditEntry]:
    """Return entries, newest first. For maintainers: they name users and removed objects."""
    member.require(Role.MAINTAINER, to="read the audit log")
    rows = AuditEntry.objects.filter(team=member.team)
    return rows.filter(filters.condition() if filters else Q()).order_by("-at", "-pk")


def load_actors(member: Member) -> list[str]:
    """Return the actors in the log."""
    rows = (
        load_audit_entries(member)
        .order_by("actor_name")
        .values_list("actor_name", flat=True)
        .distinct()
    )
    return [name or "Pitwall" for name in rows]


def load_prefixes(member: Member) -> list[str]:
    """Return the first parts of the actions in the log, such as `host`."""
    rows = load_audit_entries(member).order_by("action").values_list("action", flat=True).distinct()
    return sorted({action.split(".")[0] for action in rows})


def as_csv(rows: QuerySet[AuditEntry]) -> Iterator[str]:
    yield render_csv([COLUMNS])
    for entry in rows.iterator(_AT_ONCE):
        yield render_csv([list(export_entry(entry).values())])


def as_json_lines(rows: QuerySet[AuditEntry]) -> Iterator[str]:
    for entry in rows.iterator(_AT_ONCE):
        yield json.dumps(export_entry(entry), ensure_ascii=False) + "\n"


def export_entry(entry: AuditEntry) -> dict[str, str]:
    """Return the entry as it is exported; an automatic action has an empty actor."""
    return {
        "at": entry.at.isoformat(),
        "actor": entry.actor_name,
        "token": entry.token,
        "action": entry.action,
        "subject": entry.subject,
    }
