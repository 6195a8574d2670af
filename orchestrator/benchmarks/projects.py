"""Writes of projects: each requests the fetches that it needs, and waits for none."""

from django.conf import settings
from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.access import forget_other_server, has_credential
from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.remotes import check_url
from orchestrator.core.errors import ConflictError, InvalidRequestError


@transaction.atomic
def create_project(
    *, member: Member, slug: str, name: str, repository_url: str, default_branch: str = "main"
) -> Project:
    """A project whose first fetch is requested; `project.fetch` shows what becomes of it."""
    member.require(Role.MEMBER, to="add a project")
    check_url(repository_url, allow_local=settings.ALLOW_LOCAL_REPOSITORIES)
    if member.team.projects.filter(slug=slug).exists():
        raise ConflictError(f"the team has a project {slug} already")
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
def change_repository(
    *, member: Member, project: Project, repository_url: str, default_branch: str
) -> Project:
    """Another URL or default branch, fetched from now on.

    Whoever may add a project may correct it until something was measured or it has a credential;
    then a maintainer may. A token and a pinned host key do not go to another server.
    """
    project = Project.objects.select_for_update().get(pk=project.pk)
    is_measured = project.commits.filter(variants__isnull=False).exists()
    role = Role.MAINTAINER if is_measured or has_credential(project) else Role.MEMBER
    member.require(role, to="change the repository of a project")
    check_url(repository_url, allow_local=settings.ALLOW_LOCAL_REPOSITORIES)
    if not default_branch.strip():
        raise InvalidRequestError("name the default branch", field="default_branch")
    forget_other_server(project, repository_url)
    project.repository_url, project.default_branch = repository_url, default_branch.strip()
    project.save(update_fields=["repository_url", "default_branch"])
    Fetch.objects.filter(project=project).update(failures=0, error="")
    request_fetch(project)
    record_audit(member=member, action="project.repository_changed", subject=project)
    return project


@transaction.atomic
def fetch_now(*, member: Member, project: Project) -> Fetch:
    """Requests a fetch, whatever the back-off after failures."""
    member.require(Role.MEMBER, to="fetch a repository")
    record_audit(member=member, action="project.fetch_requested", subject=project)
    return request_fetch(project)


@transaction.atomic
def clone_again(*, member: Member, project: Project) -> Fetch:
    """Requests a new clone, which replaces the mirror: a history that was cleaned gets smaller."""
    member.require(Role.MAINTAINER, to="clone a repository again")
    record_audit(member=member, action="project.clone_requested", subject=project)
    return request_fetch(project, clone=True)
