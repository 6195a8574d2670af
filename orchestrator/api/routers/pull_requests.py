"""Reports of a run on a pull request."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from ninja import Router, Schema
from ninja.responses import Status
from pydantic import Field

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import build_web_url
from orchestrator.dispatch.wakeups import wake_forges
from orchestrator.forges.services import report_run

router = Router(tags=["runs"])


class PullRequestIn(Schema, extra="forbid"):
    """`number` of a pull request in the project's repository; on GitLab of a merge request."""

    number: Annotated[int, Field(ge=1, lt=2**31)]


class PullRequestOut(Schema):
    """`web_url` is the page that shows the progress."""

    run: UUID
    repository: str
    number: int
    web_url: str


@router.post(
    "/runs/{uuid:run_id}/pull-request",
    response={202: PullRequestOut},
    summary="Report a run on a pull request",
)
def report(request: CallerRequest, run_id: UUID, payload: PullRequestIn) -> Status[PullRequestOut]:
    """A comment and a commit status follow the run until it has ended.

    The project must be connected with its forge. A repeated request does nothing.
    """
    made = report_run(member=request.auth.member, run_id=run_id, number=payload.number)
    wake_forges()
    connection = made.pull.connection
    answer = PullRequestOut(
        run=run_id,
        repository=connection.repository,
        number=made.pull.number,
        web_url=build_web_url("project-forge", connection.project.slug),
    )
    return Status(HTTPStatus.ACCEPTED, answer)
