"""Imports of large files: a request queues them, workers process them (`import_steps`)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, Team
from orchestrator.accounts.quotas import QuotaExceededError, check_storage, load_quotas
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.measurements.bulk_import import MOST_FAULTS
from orchestrator.measurements.result_files import SMALL, TooLargeError, read_results
from orchestrator.results.models import IMPORT_ENDED, ImportPart, ResultImport

#: The number of unfinished imports that a team may have.
MOST_GOING_ON = 5
PART_BYTES = 1024**2


def is_small(path: Path) -> bool:
    """Return whether the file is small enough to be imported within the request.

    Raise InvalidRequestError if the first results of a larger file are wrong already.
    """
    faults: list[tuple[str, str]] = []
    try:
        for line in read_results(path, SMALL):
            if line.fault and len(faults) < MOST_FAULTS:
                faults.append((f"line {line.number}", line.fault))
    except TooLargeError:
        if faults:
            raise InvalidRequestError.from_faults(faults) from None
        return False
    return True


def queue_import(
    *,
    member: Member,
    path: Path,
    project: str,
    name: str,
    history: Mapping[str, Any] | None = None,
) -> ResultImport:
    """Store a file for the workers; `history`: the options of the history of another tool.

    Raise QuotaExceededError if the team has too many unfinished imports, or no storage left for the
    results.
    """
    member.require(Role.MEMBER, to="send results")
    size = path.stat().st_size
    check_storage(team=member.team, quotas=load_quotas(member.team), added=size)
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=member.team.pk)
        going_on = ResultImport.objects.filter(team=member.team).exclude(state__in=IMPORT_ENDED)
        if going_on.count() >= MOST_GOING_ON:
            raise QuotaExceededError(
                f"{member.team.name} has {MOST_GOING_ON} unfinished imports; send this file again "
                "when one of them has ended, or discard one that is not started "
                "(GET /api/v1/results/imports)"
            )
        made = ResultImport.objects.create(
            team=member.team,
            sender=member.user,
            token=member.token,
            project=project,
            name=name,
            size=size,
            history=history,
        )
        for number, content in enumerate(_read_parts(path)):
            ImportPart.objects.create(result_import=made, number=number, content=content)
    return made


def load_imports(member: Member) -> QuerySet[ResultImport]:
    """Return the imports that the member may see, newest first; a project token sees its
    project."""
    imports = ResultImport.objects.filter(team=member.team)
    if member.project is not None:
        imports = imports.filter(token__project=member.project)
    return imports.select_related("token", "sender").order_by("-pk")


def import_for(member: Member, pk: UUID) -> ResultImport:
    result_import = load_imports(member).filter(pk=pk).first()
    if result_import is None:
        raise NotFoundError(
            "there is no such import in this team; imports are deleted after 30 days"
        )
    return result_import


def _read_parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            yield part
