"""Proposals of definitions from a repository, and single trials of a definition."""

from http import HTTPStatus

from django.http import HttpResponse
from ninja import Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.proposals import ProposalOut, TryIn, build_proposal_out
from orchestrator.api.schemas.runs import RunOut, build_run_out
from orchestrator.benchmarks.proposals.proposal import propose_for_project
from orchestrator.benchmarks.selectors import load_project
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.runs.selectors import load_progress, load_run
from orchestrator.runs.tries import try_definition

router = Router(tags=["benchmarks"])


@router.get("/projects/{project}/proposal", response=ProposalOut, summary="Propose a definition")
def show_proposal(request: CallerRequest, project: Text, ref: Text | None = None) -> ProposalOut:
    """Inspects the files of a branch, tag or hash; default: the default branch. Nothing is saved:
    `POST /benchmarks/{project}/{benchmark}/try` tries the definition, and `POST
    /benchmarks/{project}/{benchmark}/definitions` saves it."""
    instance = load_project(request.auth.member, project)
    return build_proposal_out(propose_for_project(instance, ref or ""))


@router.post(
    "/benchmarks/{project}/{benchmark}/try", response={201: RunOut}, summary="Try a definition"
)
def start_trial(
    request: CallerRequest, response: HttpResponse, project: Text, benchmark: Text, payload: TryIn
) -> Status[RunOut]:
    """Starts a run with one trial of the first case. The benchmark is a draft until its definition
    is saved. 409 if a saved benchmark has the name."""
    member = request.auth.member
    run = try_definition(
        member=member,
        project=load_project(member, project),
        slug=benchmark,
        source=payload.source,
        host=payload.host,
        ref=payload.ref or "",
    )
    wake_engine()
    answer = build_run_out(load_progress(load_run(member, run.pk)))
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED, answer)
