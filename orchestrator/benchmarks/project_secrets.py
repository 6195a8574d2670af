"""Secrets of a project: the writes by members, and the read when a host gets them.

Nothing returns a value but `open_secrets`, and only dispatch calls that.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet

from agents.hostagent.protocol import SHORTEST_SECRET
from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.quotas import QuotaExceededError
from orchestrator.accounts.services import record_audit
from orchestrator.accounts.vault import seal, unseal
from orchestrator.benchmarks.fields import SECRET_NAME
from orchestrator.benchmarks.models import Commit, Project, ProjectSecret
from orchestrator.benchmarks.refs import open_repository
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError

MOST_SECRETS = 50
MOST_VALUE_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSecrets:
    """Values and versions by name."""

    values: dict[str, str]
    versions: dict[str, int]


def load_secrets(project: Project) -> QuerySet[ProjectSecret]:
    """Return the secrets of a project (from `load_project`) by name, without their values."""
    rows = ProjectSecret.objects.filter(project=project, sealed_value__isnull=False)
    return rows.select_related("changed_by").defer("sealed_value").order_by("name")


def load_secret(project: Project, name: str) -> ProjectSecret:
    secret = load_secrets(project).filter(name=name).first()
    if secret is None:
        raise NotFoundError(f"the project {project.slug} has no secret {name}")
    return secret


@transaction.atomic
def add_secret(*, member: Member, project: Project, name: str, value: str) -> ProjectSecret:
    """`set_secret`, but ConflictError if there is a secret of this name."""
    if load_secrets(project).filter(name=name).exists():
        raise ConflictError(f"there is a secret {name} already; replace its value in the list")
    return set_secret(member=member, project=project, name=name, value=value)


@transaction.atomic
def set_secret(*, member: Member, project: Project, name: str, value: str) -> ProjectSecret:
    """Add a secret, or replace its value."""
    member.require(Role.MAINTAINER, to="set a secret")
    _check_name(name)
    _check_value(value)
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    secrets = ProjectSecret.objects.filter(project=project)
    row = secrets.filter(name=name).first() or ProjectSecret(project=project, name=name)
    is_new = row.sealed_value is None
    used = secrets.exclude(sealed_value=None).count()
    if is_new and used >= MOST_SECRETS:
        raise QuotaExceededError(
            f"a project has at most {MOST_SECRETS} secrets, and {project.name} has {used}; delete "
            "one that no definition names"
        )
    row.version, row.changed_by, row.changed_at = row.version + 1, member.actor, utc_now()
    row.save()
    row.sealed_value = seal(row, "sealed_value", value)
    row.save(update_fields=["sealed_value"])
    action = "secret.added" if is_new else "secret.replaced"
    record_audit(member=member, action=action, subject=row)
    return load_secret(project, name)


@transaction.atomic
def delete_secret(*, member: Member, project: Project, name: str) -> None:
    """Delete the value of a secret, which no later run gets."""
    member.require(Role.MAINTAINER, to="delete a secret")
    secret = load_secret(project, name)
    ProjectSecret.objects.filter(pk=secret.pk).update(
        sealed_value=None, changed_by=member.actor, changed_at=utc_now(), last_used_at=None
    )
    record_audit(member=member, action="secret.deleted", subject=secret)


def check_secrets(project: Project, names: Sequence[str], commits: Sequence[Commit]) -> None:
    """Raise InvalidRequestError unless a run of these commits may get the secrets.

    All must exist, and all commits must be on a branch or tag of the repository. So the commit of a
    fork gets no secret, whoever starts the run.
    """
    if not names:
        return
    _require_all(project, names, load_secrets(project).values_list("name", flat=True))
    repository = open_repository(project)
    for commit in commits:
        if not repository.is_published(commit.sha):
            raise InvalidRequestError(
                f"{commit.short_sha} is on no branch or tag of the repository, as the commit of a "
                f"fork, so a run of it gets no secret; its definition names {', '.join(names)}. "
                "Push it to a branch after a review, or measure it with a definition without "
                "secrets"
            )


def open_secrets(project: Project, names: Collection[str]) -> OpenedSecrets:
    """Return the values for the hosts of a job, and note their use."""
    if not names:
        return OpenedSecrets(values={}, versions={})
    rows = ProjectSecret.objects.filter(project=project, name__in=names)
    secrets = list(rows.exclude(sealed_value=None))
    _require_all(project, names, [secret.name for secret in secrets])
    rows.filter(pk__in=[secret.pk for secret in secrets]).update(last_used_at=utc_now())
    return OpenedSecrets(
        values={secret.name: unseal(secret, "sealed_value") for secret in secrets},
        versions={secret.name: secret.version for secret in secrets},
    )


def _require_all(project: Project, names: Collection[str], known: Collection[str]) -> None:
    missing = sorted(set(names) - set(known))
    if missing:
        raise InvalidRequestError(
            f"the definition names {', '.join(missing)}, which is no secret of the project "
            f"{project.slug}: a maintainer adds it in the project's settings, or correct the name"
        )


def _check_name(name: str) -> None:
    if not re.fullmatch(SECRET_NAME, name):
        raise InvalidRequestError(
            f"expected 1 to 64 letters, digits and _, no digit first, got {name[:80]!r}",
            field="name",
        )


def _check_value(value: str) -> None:
    """Refuse what cannot be an environment variable, or cannot be kept out of logs."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequestError("expected text without lone surrogates", field="value") from error
    if "\0" in value:
        raise InvalidRequestError("a NUL character cannot be in a variable", field="value")
    if size > MOST_VALUE_BYTES:
        raise InvalidRequestError(
            f"a value has at most {MOST_VALUE_BYTES} bytes, and this one has {size}",
            field="value",
        )
    if len(value.strip()) < SHORTEST_SECRET:
        raise InvalidRequestError(
            f"expected at least {SHORTEST_SECRET} characters: a shorter value cannot be told from "
            "other text in a log",
            field="value",
        )
