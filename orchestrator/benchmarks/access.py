"""Credentials of repositories: the writes, and the read before a fetch."""

import re
from functools import partial
from urllib.parse import unquote, urlsplit

from django.db import transaction
from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit, record_system_audit
from orchestrator.accounts.vault import seal, unseal
from orchestrator.benchmarks import host_keys
from orchestrator.benchmarks.git_access import TOKEN_NEEDS_HTTPS, Access
from orchestrator.benchmarks.models import Project, RepositoryAccess
from orchestrator.benchmarks.remotes import ServerAddress, parse_place, strip_secret
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.transport.keys import generate_key

#: URLs of older versions, which could contain a user name and a password.
SECRET_IN_URL = r"^(https?://[^/]*@|ssh://[^/@]*:[^/]*@)"
_TOKEN = re.compile(r"[!-~]{1,500}")
_USERNAME = re.compile(r"[!-~]{0,100}")
_MOST_MOVED = 100


def load_git_access(project: Project) -> Access:
    """Return what git gets for a fetch of this project: its credential and its host keys.

    The callbacks store the host keys that git sees. The access is empty if the repository was
    changed in the meantime: a credential is sent only to its own server.
    """
    row = RepositoryAccess.objects.filter(
        project=project, project__repository_url=project.repository_url
    ).first()
    on_first_key = partial(host_keys.pin_first_key, project)
    if row is None:
        return Access(on_first_key=on_first_key)
    return Access(
        private_key=_unseal_column(row, "sealed_private_key"),
        username=row.username,
        token=_unseal_column(row, "sealed_token"),
        host_key=row.host_key,
        accepts_first_key=not row.was_host_key_forgotten,
        on_first_key=on_first_key,
        on_other_key=partial(host_keys.record_offered_key, project),
        on_pinned_key=partial(host_keys.drop_stale_offer, project),
    )


def load_repository_access(project: Project) -> RepositoryAccess:
    """Return the credential of the project (from `load_project`), or an unsaved empty one."""
    rows = RepositoryAccess.objects.select_related("changed_by")
    return rows.filter(project=project).first() or RepositoryAccess(project=project)


@transaction.atomic
def generate_deploy_key(*, member: Member, project: Project) -> RepositoryAccess:
    """Generate a key pair, which replaces the project's former credential."""
    member.require(Role.MAINTAINER, to="set a repository's credential")
    _lock_unchanged(project)
    if read_scheme(project) != "ssh":
        raise InvalidRequestError(
            "a deploy key requires an SSH address such as git@host:path: "
            "store an access token for https, or add the project with its SSH address"
        )
    pair = generate_key()
    _set(member, project, private_key=pair.private_openssh, public_key=pair.public_openssh)
    record_audit(member=member, action="repository.deploy_key_generated", subject=project)
    return load_repository_access(project)


@transaction.atomic
def save_token(
    *, member: Member, project: Project, token: str, username: str = ""
) -> RepositoryAccess:
    """Store a token, which replaces the project's former credential."""
    member.require(Role.MAINTAINER, to="set a repository's credential")
    _lock_unchanged(project)
    place = _find_place(project.repository_url)
    if place is not None and place.scheme == "http" and not place.is_loopback:
        raise InvalidRequestError(TOKEN_NEEDS_HTTPS, field="token")
    if place is None or place.scheme == "ssh":
        raise InvalidRequestError(
            "a token requires an address that starts with https://; generate a deploy key for SSH",
            field="token",
        )
    if not _TOKEN.fullmatch(token):
        raise InvalidRequestError("expected 1 to 500 ASCII characters, no spaces", field="token")
    if not _USERNAME.fullmatch(username):
        raise InvalidRequestError(
            "expected at most 100 ASCII characters, no spaces", field="username"
        )
    _set(member, project, token=token, username=username)
    record_audit(member=member, action="repository.token_saved", subject=project)
    return load_repository_access(project)


@transaction.atomic
def remove_credential(*, member: Member, project: Project) -> None:
    """Remove the credential; the pinned host key stays."""
    member.require(Role.MAINTAINER, to="remove a repository's credential")
    _set(member, project)
    record_audit(member=member, action="repository.credential_removed", subject=project)


def move_secrets_out_of_urls() -> None:
    """Seal the passwords in URLs of older versions, and remove them from the URLs.

    Raise BrokenSealError, and change nothing, if there is no key to seal with.
    """
    for project in find_projects_with_secrets().select_related("team")[:_MOST_MOVED]:
        _move_secret(project)


def find_projects_with_secrets() -> QuerySet[Project]:
    return Project.with_deleted.filter(repository_url__regex=SECRET_IN_URL)


@transaction.atomic
def _move_secret(project: Project) -> None:
    old = project.repository_url
    parts = urlsplit(old)
    user_info = parts.netloc.rpartition("@")[0]
    username, _, password = map(unquote, user_info.partition(":"))
    has_token = RepositoryAccess.objects.filter(project=project, sealed_token__isnull=False)
    # ssh never used the password.
    if parts.scheme != "ssh" and not has_token.exists():
        row, _ = RepositoryAccess.objects.get_or_create(project=project)
        RepositoryAccess.objects.filter(pk=row.pk).update(
            sealed_token=seal(row, "sealed_token", password or username),
            username=username[:100] if password else "",
            changed_at=utc_now(),
        )
    clean = strip_secret(old)
    moved = Project.with_deleted.filter(pk=project.pk, repository_url=old).update(
        repository_url=clean
    )
    if moved:
        record_system_audit(team=project.team, action="repository.token_moved", subject=project)


def _set(
    member: Member,
    project: Project,
    *,
    private_key: str = "",
    public_key: str = "",
    token: str = "",
    username: str = "",
) -> None:
    """Replace the credential; a part that is not given is removed."""
    row, _ = RepositoryAccess.objects.get_or_create(project=project)
    RepositoryAccess.objects.filter(pk=row.pk).update(
        sealed_private_key=seal(row, "sealed_private_key", private_key) if private_key else None,
        public_key=public_key,
        sealed_token=seal(row, "sealed_token", token) if token else None,
        username=username,
        changed_by=member.actor,
        changed_at=utc_now(),
    )


def forget_other_server(project: Project, url: str) -> None:
    """Remove what belongs to the old server, before the project gets this URL.

    A token and a host key belong to their server. A deploy key stays if the new URL uses SSH: its
    private half is never sent.
    """
    old, new = _find_place(project.repository_url), _find_place(url)
    if old == new:
        return
    values: dict[str, object] = {"sealed_token": None, "username": ""}
    values |= {"host_key": "", "host_key_at": None, "offered_host_key": "", "offered_at": None}
    if new is None or new.scheme != "ssh":
        values |= {"sealed_private_key": None, "public_key": ""}
    RepositoryAccess.objects.filter(project=project).update(**values)


def read_scheme(project: Project) -> str:
    """Return the scheme of the URL; empty for a local path and without a repository."""
    place = _find_place(project.repository_url)
    return place.scheme if place else ""


def _find_place(url: str) -> ServerAddress | None:
    """Return None for a local path, and for a URL of an older version that contains a password."""
    try:
        return parse_place(url)._replace(host=parse_place(url).host.lower())
    except InvalidRequestError:
        return None


def _lock_unchanged(project: Project) -> None:
    """Lock the project; ConflictError if its URL is not the one that the member saw."""
    rows = Project.objects.select_for_update().filter(pk=project.pk)
    if not rows.filter(repository_url=project.repository_url).exists():
        raise ConflictError("the address of the repository was changed; reload the page")


def _unseal_column(row: RepositoryAccess, column: str) -> str:
    return "" if getattr(row, column) is None else unseal(row, column)
