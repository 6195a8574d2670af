"""Host keys of git servers behind SSH: the pinned key, and a different one that is offered."""

from django.db import transaction
from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit, record_system_audit
from orchestrator.benchmarks.models import Project, RepositoryAccess
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError
from orchestrator.transport.address import HostKey


@transaction.atomic
def accept_host_key(*, member: Member, project: Project, fingerprint: str) -> None:
    """Pin the key that the server showed last, if it is the one that the member saw."""
    member.require(Role.MAINTAINER, to="accept a host key")
    row = RepositoryAccess.objects.select_for_update().filter(project=project).first()
    offered = row.offered_host_key if row else ""
    if not offered or HostKey.parse(offered).fingerprint_sha256 != fingerprint:
        raise ConflictError("no such host key is waiting for confirmation; reload the page")
    _select_row(project).update(
        host_key=offered, host_key_at=utc_now(), offered_host_key="", offered_at=None
    )
    subject = f"{project}: {fingerprint}"
    record_audit(member=member, action="repository.host_key_accepted", subject=subject)


@transaction.atomic
def reject_offered_key(*, member: Member, project: Project) -> None:
    """Drop the offered key; ConflictError if none is offered or none is pinned."""
    member.require(Role.MAINTAINER, to="drop an offered host key")
    row = RepositoryAccess.objects.select_for_update().filter(project=project).first()
    if row is None or not row.host_key or not row.offered_host_key:
        raise ConflictError("no other host key is waiting for confirmation; reload the page")
    _select_row(project).update(offered_host_key="", offered_at=None)
    subject = f"{project}: {row.offered_fingerprint}"
    record_audit(member=member, action="repository.host_key_dropped", subject=subject)


@transaction.atomic
def forget_host_key(*, member: Member, project: Project) -> None:
    """Remove the pinned key; the next one is pinned only after a maintainer accepts it.

    Raise ConflictError if none is pinned.
    """
    member.require(Role.MAINTAINER, to="forget a host key")
    row = RepositoryAccess.objects.select_for_update().filter(project=project).first()
    if row is None or not row.host_key:
        raise ConflictError("no host key is pinned; reload the page")
    _select_row(project).update(
        host_key="", host_key_at=utc_now(), offered_host_key="", offered_at=None
    )
    subject = f"{project}: {row.host_fingerprint}"
    record_audit(member=member, action="repository.host_key_forgotten", subject=subject)


def pin_first_key(project: Project, key: str) -> None:
    """Pin the key of the first contact with a server; nothing if a key is or was pinned."""
    RepositoryAccess.objects.get_or_create(project=project)
    unknown = _select_row(project).filter(host_key="", host_key_at=None)
    with transaction.atomic():
        if unknown.update(host_key=key, host_key_at=utc_now()):
            _record(project, key, "repository.host_key_pinned")


def record_offered_key(project: Project, key: str) -> None:
    """Store a key that the server showed and that is not pinned."""
    _select_row(project).update(offered_host_key=key, offered_at=utc_now())


def drop_stale_offer(project: Project) -> None:
    """Drop the offered key, because the server showed the pinned one again."""
    with transaction.atomic():
        # Lock this row only: a change of the repository locks the project before it.
        rows = _select_row(project).select_for_update(of=("self",))
        row = rows.exclude(offered_host_key="").first()
        if row is not None:
            _select_row(project).update(offered_host_key="", offered_at=None)
            _record(project, row.offered_host_key, "repository.host_key_dropped")


def find_projects_with_other_host_key() -> QuerySet[Project]:
    return Project.objects.exclude(access=None).exclude(access__offered_host_key="")


def _select_row(project: Project) -> QuerySet[RepositoryAccess]:
    """Return the project's row; no row if the repository was changed in the meantime."""
    return RepositoryAccess.objects.filter(
        project=project, project__repository_url=project.repository_url
    )


def _record(project: Project, key: str, action: str) -> None:
    subject = f"{project}: {HostKey.parse(key).fingerprint_sha256}"
    record_system_audit(team=project.team, action=action, subject=subject)
