"""The secrets of a project for its hosts."""

from http import HTTPStatus

from ninja import Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.project_secrets import (
    SecretIn,
    SecretList,
    SecretOut,
    build_secret_out,
)
from orchestrator.benchmarks import project_secrets as services
from orchestrator.benchmarks.selectors import load_project

router = Router(tags=["projects"])

SECRETS = "/projects/{project}/secrets"


@router.get(SECRETS, response=SecretList, summary="List a project's secrets")
def list_secrets(request: CallerRequest, project: Text) -> SecretList:
    """For maintainers. Values are never returned. A project has at most 50 secrets."""
    instance = load_project(request.auth.member, project)
    rows = services.load_secrets(instance)
    return SecretList(secrets=[build_secret_out(instance, row) for row in rows])


@router.get(SECRETS + "/{name}", response=SecretOut, summary="Show a project's secret")
def show_secret(request: CallerRequest, project: Text, name: Text) -> SecretOut:
    """For maintainers. Its value is never returned."""
    instance = load_project(request.auth.member, project)
    return build_secret_out(instance, services.load_secret(instance, name))


@router.put(SECRETS + "/{name}", response=SecretOut, summary="Set a project's secret")
def set_secret(request: CallerRequest, project: Text, name: Text, payload: SecretIn) -> SecretOut:
    """For maintainers. Adds the secret, or replaces its value, which increases `version`. 409 if
    the project has 50 other secrets."""
    member = request.auth.member
    instance = load_project(member, project)
    row = services.set_secret(member=member, project=instance, name=name, value=payload.value)
    return build_secret_out(instance, row)


@router.delete(SECRETS + "/{name}", response={204: None}, summary="Delete a project's secret")
def delete_secret(request: CallerRequest, project: Text, name: Text) -> Status[None]:
    """For maintainers. Runs of definitions that name it are refused from then on."""
    member = request.auth.member
    services.delete_secret(member=member, project=load_project(member, project), name=name)
    return Status(HTTPStatus.NO_CONTENT, None)
