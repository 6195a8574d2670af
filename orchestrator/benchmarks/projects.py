"""Writes of projects: they request the fetches that they need, and wait for none."""

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.access import forget_other_server
from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.suite_repositories import check_repository_address
from orchestrator.core.errors import ConflictError, InvalidRequestError


@transaction.atomic
def create_project(
    *, member: Member, slug: str, name: str, repository_url: str, default_branch: str = "main"
) -> Project:
    """Create a project and request its first fetch; `project.fetch` shows the state."""
    member.require(Role.MEMBER, to="add a project")
    check_repository_address(repository_url)
    if member.team.projects.filter(slug=slug).exists():
        raise ConflictError(f"the team already has a project {slug}; choose another short name")
    project = Project.objects.create(
        team=member.team,
        slug=slug,
        name=name or slug,
        repository_url=repository_url,
        default_branch=default_branch,
    )
    request_fetch(project)
    record_audit(member=member, action="project.created", subject=project)
    return project


@transaction.atomic
def change_project(
    *, member: Member, project: Project, name: str, repository_url: str, default_branch: str
) -> Project:
    """Set another name, URL or default branch; the latter two request a fetch.

    Its slug is part of addresses and cannot be changed. Each URL has its own mirror, and branches
    of the former one are dropped; commits and results remain. A token and a pinned host key are not
    sent to another server.
    """
    member.require(Role.MAINTAINER, to="change a project")
    project = Project.objects.select_for_update().get(pk=project.pk)
    check_repository_address(repository_url)
    if not default_branch.strip():
        raise InvalidRequestError("enter the default branch, such as main", field="default_branch")
    if not name.strip():
        raise InvalidRequestError("enter a name for the project", field="name")
    source = (repository_url, default_branch.strip())
    is_moved = source != (project.repository_url, project.default_branch)
    if repository_url != project.repository_url:
        forget_other_server(project, repository_url)
        project.branches, project.fetched_at = [], None
    project.name = name.strip()
    project.repository_url, project.default_branch = source
    project.save(
        update_fields=["name", "repository_url", "default_branch", "branches", "fetched_at"]
    )
    if is_moved:
        Fetch.objects.filter(project=project).update(failures=0, error="")
        request_fetch(project)
    action = "project.repository_changed" if is_moved else "project.renamed"
    record_audit(member=member, action=action, subject=project)
    return project


@transaction.atomic
def fetch_now(*, member: Member, project: Project) -> Fetch:
    """Request a fetch, regardless of the back-off after failures."""
    member.require(Role.MEMBER, to="fetch a repository")
    record_audit(member=member, action="project.fetch_requested", subject=project)
    return request_fetch(project)


@transaction.atomic
def clone_again(*, member: Member, project: Project) -> Fetch:
    """Request a new clone, which replaces the mirror and shrinks it if history was cleaned."""
    member.require(Role.MAINTAINER, to="clone a repository again")
    record_audit(member=member, action="project.clone_requested", subject=project)
    return request_fetch(project, clone=True)
