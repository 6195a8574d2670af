"""The commits of other repositories that a run measures with.

Each name of a commit is resolved once, when the run is planned. All trials of the run use these
hashes, also if a branch moves later.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Team
from orchestrator.benchmarks.fields import Scalar
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.other_repositories import list_refs
from orchestrator.benchmarks.refs import Refs, open_repository
from orchestrator.benchmarks.selectors import load_project
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.runs.models import Run


class PinnedCommit(NamedTuple):
    """A repository of the definition, its project, and the commit that `ref` named."""

    name: str
    project: str
    ref: str
    sha: str


def resolve_pins(
    member: Member, spec: Spec, cases: Iterable[Mapping[str, Scalar]]
) -> tuple[PinnedCommit, ...]:
    """Resolve the commits of other repositories for these cases.

    Raise InvalidRequestError with the field of the definition, and FetchRunningError if a fetch of
    one of them has to end first.
    """
    projects: dict[str, tuple[Project, Refs]] = {}
    wanted = dict.fromkeys(each for case in cases for each in list_refs(spec.repositories, case))
    pins = []
    for name, slug, ref in wanted:
        if slug not in projects:
            project = _load_visible_project(member, name, slug)
            projects[slug] = project, Refs(project)
        field = f"repositories.{name}.ref"
        try:
            commit = _resolve(*projects[slug], ref)
        except InvalidRequestError as error:
            raise InvalidRequestError(f"{field}: {error}", field=field) from error
        pins.append(PinnedCommit(name, slug, ref, commit.sha))
    return tuple(pins)


def _resolve(project: Project, refs: Refs, ref: str) -> Commit:
    """Return the commit; not that of a fork, which would run next to secrets of another project."""
    commit = refs.commit(ref)
    if not open_repository(project).is_published(commit.sha):
        raise InvalidRequestError(
            f"{commit.short_sha} is on no branch or tag of the repository, as the commit of a "
            "fork; push it to a branch after a review"
        )
    return commit


def read_pins(stored: Sequence[Mapping[str, str]]) -> list[PinnedCommit]:
    """Return the value of `Run.repositories`."""
    return [PinnedCommit(**pin) for pin in stored]


def select_pins(
    pins: Sequence[PinnedCommit], spec: Spec, parameters: Mapping[str, Scalar]
) -> dict[str, PinnedCommit]:
    """Return the commit of each repository for one case, by the name in the definition."""
    known = {(pin.name, pin.ref): pin for pin in pins}
    return {name: known[name, ref] for name, _, ref in list_refs(spec.repositories, parameters)}


def load_pinned_commits(run: Run) -> dict[PinnedCommit, Commit]:
    """Return the commits of other repositories of a run, with their projects.

    Raise InvalidRequestError if a project was deleted or replaced since the run started.
    """
    return {pin: _load_commit(run.team, pin) for pin in read_pins(run.repositories)}


def _load_commit(team: Team, pin: PinnedCommit) -> Commit:
    commits = Commit.objects.filter(
        project__team=team, project__slug=pin.project, project__deleted_at=None, sha=pin.sha
    )
    commit = commits.select_related("project__team").first()
    if commit is None:
        raise InvalidRequestError(
            f"the commit {pin.sha[:10]} of the repository {pin.name} is gone: the project "
            f"{pin.project} was deleted or renamed since the run was created"
        )
    return commit


def _load_visible_project(member: Member, name: str, slug: str) -> Project:
    try:
        return load_project(member, slug)
    except NotFoundError as error:
        field = f"repositories.{name}.project"
        raise InvalidRequestError(f"{field}: {error}", field=field) from error
