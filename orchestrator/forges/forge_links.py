"""Addresses of commits and of their differences on the forge of a repository. No network."""

import re
from dataclasses import dataclass

from orchestrator.benchmarks.models import Project
from orchestrator.forges.models import Connection, ForgeKind

#: Public forges that need no connection of the project.
_PUBLIC = {
    "github.com": ForgeKind.GITHUB,
    "gitlab.com": ForgeKind.GITLAB,
    "codeberg.org": ForgeKind.GITEA,
    "gitea.com": ForgeKind.GITEA,
}
_WEB_ADDRESS = re.compile(
    r"(?:https?://(?:[^@/]*@)?|ssh://(?:[^@/]*@)?|[^@/:]+@)"
    r"(?P<host>[A-Za-z0-9.-]+)(?::\d+(?=/))?[:/](?P<path>[\w.~/-]+?)(?:\.git)?/?"
)
#: Kind → (address of a commit, address of the difference of two commits), below the repository.
_PATHS = {
    ForgeKind.GITHUB: ("commit/{after}", "compare/{before}...{after}"),
    ForgeKind.GITLAB: ("-/commit/{after}", "-/compare/{before}...{after}"),
    ForgeKind.GITEA: ("commit/{after}", "compare/{before}...{after}"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeLinks:
    """`title` names the forge; `repository_url` is the page of the repository there."""

    title: str
    kind: ForgeKind
    repository_url: str

    def build_commit_url(self, sha: str) -> str:
        return f"{self.repository_url}/{_PATHS[self.kind][0].format(after=sha)}"

    def build_diff_url(self, before: str, after: str) -> str:
        return f"{self.repository_url}/{_PATHS[self.kind][1].format(before=before, after=after)}"


def load_forge_links(project: Project) -> ForgeLinks | None:
    """Return the links of a project; None if its repository is on no known forge.

    The host of the address is a public forge, or that of the project's connection.
    """
    match = _WEB_ADDRESS.fullmatch(project.repository_url)
    if match is None:
        return None
    host, path = match["host"].lower(), match["path"]
    kind = _PUBLIC.get(host) or _find_connected_kind(project)
    if kind is None:
        return None
    title = "Gitea" if kind == ForgeKind.GITEA else str(kind.label)
    return ForgeLinks(
        title="Codeberg" if host == "codeberg.org" else title,
        kind=kind,
        repository_url=f"https://{host}/{path}",
    )


def _find_connected_kind(project: Project) -> ForgeKind | None:
    kind = Connection.objects.filter(project=project).values_list("kind", flat=True).first()
    return ForgeKind(kind) if kind else None
