"""Projects: the git repositories of a team, and their known commits."""

from http import HTTPStatus
from typing import Annotated

from django.http import HttpResponse
from ninja import Query, Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Limit, NumberCursor, cut_page
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.deletions import DependentsOut, build_dependents_out
from orchestrator.api.schemas.projects import (
    BranchOut,
    FetchOut,
    ProjectChangeIn,
    ProjectCommitPage,
    ProjectIn,
    ProjectOut,
    ProjectPage,
    RefsOut,
    build_fetch_out,
    build_project_commit_out,
    build_project_out,
)
from orchestrator.benchmarks import projects
from orchestrator.benchmarks.refs import read_refs
from orchestrator.benchmarks.selectors import load_project, load_projects, match_commits
from orchestrator.retention import deletions

router = Router(tags=["projects"])


@router.get("/projects", response=ProjectPage, summary="List projects, newest first")
def list_projects(
    request: CallerRequest, cursor: NumberCursor = None, limit: Limit = 50
) -> ProjectPage:
    rows = load_projects(request.auth.member)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return ProjectPage(projects=[build_project_out(each) for each in page], next=following)


@router.post("/projects", response={201: ProjectOut}, summary="Add a project")
def create_project(
    request: CallerRequest, response: HttpResponse, payload: ProjectIn
) -> Status[ProjectOut]:
    """Requests its first fetch: `fetch` shows the state. 409 if the slug is taken."""
    made = projects.create_project(
        member=request.auth.member,
        slug=payload.slug,
        name=payload.name or "",
        repository_url=payload.repository_url,
        default_branch=payload.default_branch,
    )
    answer = build_project_out(made)
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED, answer)


@router.get("/projects/{project}", response=ProjectOut, summary="Show a project")
def show_project(request: CallerRequest, project: Text) -> ProjectOut:
    return build_project_out(load_project(request.auth.member, project))


@router.patch("/projects/{project}", response=ProjectOut, summary="Change a project")
def change_project(request: CallerRequest, project: Text, payload: ProjectChangeIn) -> ProjectOut:
    """Another URL or default branch requests a fetch. Commits and results remain."""
    member = request.auth.member
    instance = load_project(member, project)
    changed = projects.change_project(
        member=member,
        project=instance,
        name=payload.name or instance.name,
        repository_url=payload.repository_url or instance.repository_url,
        default_branch=payload.default_branch or instance.default_branch,
    )
    return build_project_out(changed)


@router.get(
    "/projects/{project}/dependents",
    response=DependentsOut,
    summary="Show what is deleted with a project",
)
def list_project_dependents(request: CallerRequest, project: Text) -> DependentsOut:
    member = request.auth.member
    dependents = deletions.list_project_dependents(member, load_project(member, project))
    return build_dependents_out(dependents)


@router.delete("/projects/{project}", response={204: None}, summary="Delete a project")
def delete_project(request: CallerRequest, project: Text) -> Status[None]:
    """The project vanishes with its benchmarks and results; its unfinished runs are cancelled.

    It can be restored for 14 days, and is removed afterwards.
    """
    deletions.delete_project(member=request.auth.member, slug=project)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.post("/projects/{project}/fetch", response={202: FetchOut}, summary="Fetch a repository")
def fetch_project(request: CallerRequest, project: Text) -> Status[FetchOut]:
    """Requests a fetch, which runs as soon as a slot is free; the project shows its state."""
    member = request.auth.member
    fetch = projects.fetch_now(member=member, project=load_project(member, project))
    return Status(HTTPStatus.ACCEPTED, build_fetch_out(fetch))


@router.post("/projects/{project}/clone", response={202: FetchOut}, summary="Clone again")
def clone_project(request: CallerRequest, project: Text) -> Status[FetchOut]:
    """Requests a fetch that replaces the local mirror with a new clone.

    This makes the mirror smaller after large files were removed from the history. While the clone
    runs, the old mirror does not count towards the quota. Commits that no branch or tag reaches are
    lost from the mirror.
    """
    member = request.auth.member
    fetch = projects.clone_again(member=member, project=load_project(member, project))
    return Status(HTTPStatus.ACCEPTED, build_fetch_out(fetch))


@router.get("/projects/{project}/commits", response=ProjectCommitPage, summary="List commits")
def list_commits(
    request: CallerRequest,
    project: Text,
    text: Annotated[
        Text | None,
        Query(description="Text in the subject or author, or the beginning of the hash."),
    ] = None,
    cursor: NumberCursor = None,
    limit: Limit = 50,
) -> ProjectCommitPage:
    """The commits that Pitwall knows, the most recently found first."""
    rows = match_commits(load_project(request.auth.member, project), text or "")
    page, following = cut_page(rows, after=cursor, limit=limit)
    return ProjectCommitPage(
        commits=[build_project_commit_out(each) for each in page], next=following
    )


@router.get("/projects/{project}/refs", response=RefsOut, summary="List branches and tags")
def list_refs(request: CallerRequest, project: Text) -> RefsOut:
    """As of the last fetch. A run looks them up in a new fetch."""
    tips, tags = read_refs(load_project(request.auth.member, project))
    return RefsOut(
        branches=[BranchOut(branch=name, commit=sha) for name, sha in sorted(tips)], tags=tags
    )
