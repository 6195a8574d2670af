"""The client of a connection."""

from django.conf import settings

from orchestrator.core.errors import ConflictError
from orchestrator.fleet.vault import unseal
from orchestrator.forges.clients.base import Forge
from orchestrator.forges.clients.gitea import Gitea
from orchestrator.forges.clients.github import GitHub
from orchestrator.forges.clients.gitlab import GitLab
from orchestrator.forges.models import Connection, ForgeKind

_CLIENTS: dict[str, type[Forge]] = {
    ForgeKind.GITHUB: GitHub,
    ForgeKind.GITLAB: GitLab,
    ForgeKind.GITEA: Gitea,
}


def build_forge(connection: Connection) -> Forge:
    """Return the client of a connection. Raise ConflictError if Pitwall has no token for it."""
    if connection.sealed_token is None:
        raise ConflictError(
            f"Pitwall has no token for {connection}; a maintainer adds one in the project's "
            "settings"
        )
    return _CLIENTS[connection.kind](
        api_url=connection.api_url.rstrip("/"),
        repository=connection.repository,
        token=unseal(connection, "sealed_token"),
        allowed=settings.ALLOWED_INTERNAL_NETWORKS,
    )
