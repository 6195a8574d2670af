"""The proposal of a definition that the form of a new benchmark begins with."""

from dataclasses import dataclass, field
from typing import Any

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.proposals.proposal import Guess, propose_for_project
from orchestrator.benchmarks.selectors import load_project
from orchestrator.core.errors import InvalidRequestError
from orchestrator.web.benchmarks.forms import build_schema_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Wizard:
    """What was found in the repository of `project`; `problem`: why it could not be inspected."""

    project: Project | None = None
    commit: Commit | None = None
    guesses: tuple[Guess, ...] = ()
    problem: str = ""
    initial: dict[str, Any] = field(default_factory=dict)


def inspect_repository(member: Member, slug: str) -> Wizard:
    """Return a proposal for the project of that name; nothing without a name.

    Raise FetchRunningError while its first fetch is running: then the page is shown after it.
    """
    if not slug:
        return Wizard()
    project = load_project(member, slug)
    chosen = {"project": project.slug, "slug": project.slug}
    try:
        result = propose_for_project(project)
    except InvalidRequestError as error:
        return Wizard(project=project, problem=str(error), initial=chosen)
    if result.proposal is None:
        return Wizard(project=project, commit=result.commit, initial=chosen)
    source = f"{build_schema_line()}{result.proposal.source}"
    return Wizard(
        project=project,
        commit=result.commit,
        guesses=result.proposal.guesses,
        initial={**chosen, "source": source},
    )
