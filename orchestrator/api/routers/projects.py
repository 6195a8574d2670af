"""Projects: the git repositories of a team, and the commits that are known of them."""

from http import HTTPStatus
from typing import Annotated

from django.http import HttpResponse
from ninja import Query, Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Limit, NumberCursor, page_of
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.projects import (
    BranchOut,
    ProjectCommitPage,
    ProjectIn,
    ProjectOut,
    ProjectPage,
    RefsOut,
    project_commit_out,
    project_out,
)
from orchestrator.benchmarks import services
from orchestrator.benchmarks.selectors import commits_with, project_for, projects_of

router = Router(tags=["projects"])


@router.get("/projects", response=ProjectPage, summary="List projects, newest first")
def list_projects(
    request: CallerRequest, cursor: NumberCursor = None, limit: Limit = 50
) -> ProjectPage:
    rows = projects_of(request.auth.member)
    found, following = page_of(rows, after=cursor, limit=limit)
    return ProjectPage(projects=[project_out(each) for each in found], next=following)


@router.post("/projects", response={201: ProjectOut}, summary="Add a project")
def create_project(
    request: CallerRequest, response: HttpResponse, payload: ProjectIn
) -> Status[ProjectOut]:
    """Its repository is read at once; 422 where it cannot be, 409 where the slug is taken."""
    made = services.create_project(
        member=request.auth.member,
        slug=payload.slug,
        name=payload.name or "",
        repository_url=payload.repository_url,
        default_branch=payload.default_branch,
    )
    answer = project_out(made)
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED, answer)


@router.get("/projects/{project}", response=ProjectOut, summary="Show a project")
def show_project(request: CallerRequest, project: Text) -> ProjectOut:
    return project_out(project_for(request.auth.member, project))


@router.get("/projects/{project}/commits", response=ProjectCommitPage, summary="List commits")
def list_commits(
    request: CallerRequest,
    project: Text,
    text: Annotated[
        Text | None,
        Query(description="In the subject or author, or at the beginning of the hash."),
    ] = None,
    cursor: NumberCursor = None,
    limit: Limit = 50,
) -> ProjectCommitPage:
    """Those that Pitwall knows, in the order in which it met them, the last first."""
    rows = commits_with(project_for(request.auth.member, project), text or "")
    found, following = page_of(rows, after=cursor, limit=limit)
    return ProjectCommitPage(commits=[project_commit_out(each) for each in found], next=following)


@router.get("/projects/{project}/refs", response=RefsOut, summary="List branches and tags")
def list_refs(request: CallerRequest, project: Text) -> RefsOut:
    """As the last fetch saw them; a run fetches before it looks."""
    tips, tags = services.refs_of(project_for(request.auth.member, project))
    return RefsOut(
        branches=[BranchOut(branch=name, commit=sha) for name, sha in sorted(tips)], tags=tags
    )
