"""The credential of a project's repository, and the host key of its git server."""

from http import HTTPStatus

from ninja import Router
from ninja.responses import Status

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.repository_access import (
    GitHostKeyIn,
    RepositoryAccessOut,
    RepositoryTokenIn,
    build_repository_access_out,
)
from orchestrator.benchmarks import access, host_keys
from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.selectors import load_project

router = Router(tags=["projects"])

ACCESS = "/projects/{project}/repository-access"


@router.get(ACCESS, response=RepositoryAccessOut, summary="Show a repository's access settings")
def show_repository_access(request: CallerRequest, project: Text) -> RepositoryAccessOut:
    """Its secrets are never returned."""
    _, instance = _load_project(request, project)
    return build_repository_access_out(instance, access.load_repository_access(instance))


@router.post(ACCESS + "/deploy-key", response=RepositoryAccessOut, summary="Generate a deploy key")
def generate_deploy_key(request: CallerRequest, project: Text) -> RepositoryAccessOut:
    """For maintainers, and for repositories over SSH. Add `public_key` on the git server. An
    existing credential is removed."""
    member, instance = _load_project(request, project)
    row = access.generate_deploy_key(member=member, project=instance)
    return build_repository_access_out(instance, row)


@router.put(ACCESS + "/token", response=RepositoryAccessOut, summary="Store an access token")
def save_repository_token(
    request: CallerRequest, project: Text, payload: RepositoryTokenIn
) -> RepositoryAccessOut:
    """For maintainers, and for repositories over https. An existing credential is replaced."""
    member, instance = _load_project(request, project)
    row = access.save_token(
        member=member, project=instance, token=payload.token, username=payload.username
    )
    request_fetch(instance)
    return build_repository_access_out(instance, row)


@router.delete(ACCESS, response={204: None}, summary="Remove a repository's credential")
def remove_repository_credential(request: CallerRequest, project: Text) -> Status[None]:
    """For maintainers. The pinned host key stays."""
    member, instance = _load_project(request, project)
    access.remove_credential(member=member, project=instance)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.post(
    ACCESS + "/host-key", response=RepositoryAccessOut, summary="Accept a git server's new host key"
)
def accept_git_host_key(
    request: CallerRequest, project: Text, payload: GitHostKeyIn
) -> RepositoryAccessOut:
    """For maintainers. 409 if there is no offered key."""
    member, instance = _load_project(request, project)
    host_keys.accept_host_key(member=member, project=instance, fingerprint=payload.fingerprint)
    request_fetch(instance)
    return build_repository_access_out(instance, access.load_repository_access(instance))


@router.delete(
    ACCESS + "/offered-host-key", response=RepositoryAccessOut, summary="Keep the pinned host key"
)
def reject_git_host_key(request: CallerRequest, project: Text) -> RepositoryAccessOut:
    """For maintainers. Discards the other key that the git server showed. 409 if there is none."""
    member, instance = _load_project(request, project)
    host_keys.reject_offered_key(member=member, project=instance)
    request_fetch(instance)
    return build_repository_access_out(instance, access.load_repository_access(instance))


@router.delete(
    ACCESS + "/host-key", response=RepositoryAccessOut, summary="Forget the pinned host key"
)
def forget_git_host_key(request: CallerRequest, project: Text) -> RepositoryAccessOut:
    """For maintainers. Nothing is fetched until the next key that the git server shows is accepted.
    409 if no key is pinned."""
    member, instance = _load_project(request, project)
    host_keys.forget_host_key(member=member, project=instance)
    request_fetch(instance)
    return build_repository_access_out(instance, access.load_repository_access(instance))


def _load_project(request: CallerRequest, project: str) -> tuple[Member, Project]:
    member = request.auth.member
    return member, load_project(member, project)
