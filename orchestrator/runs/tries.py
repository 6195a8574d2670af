"""One trial of a definition before it is saved: its benchmark is a draft until then."""

import json

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.benchmarks.matrix import CaseSpec, expand, find_unsupported_reason
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.benchmarks.services import save_draft
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.models import Run
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.services import create_run

#: Fields of a run request → those of a trial.
_FIELDS = {"hosts": "host", "baseline": "ref"}


@transaction.atomic
def try_definition(
    *, member: Member, project: Project, slug: str, source: str, host: str, ref: str = ""
) -> Run:
    """Start one trial of the first case, and keep the text as a draft.

    `ref` is the measured branch, tag or hash; by default the default branch. Raise
    InvalidRequestError with the field for a definition that is not valid, ConflictError if another
    benchmark has the name, and FetchRunningError until the branch is fetched.
    """
    member.require(Role.MEMBER, to="try a benchmark")
    if not host:
        raise InvalidRequestError("choose a host for the trial", field="host")
    definition = save_draft(member=member, project=project, slug=slug, source=source)
    request = RunRequest(
        benchmark=slug,
        project=project.slug,
        baseline=ref or project.default_branch,
        contenders=(),
        cases=_build_expression(_find_first_case(read_spec(definition))),
        hosts=(host,),
        rounds=1,
    )
    try:
        return create_run(member=member, request=request)
    except InvalidRequestError as error:
        error.field = _FIELDS.get(error.field or "", error.field)
        raise


def _find_first_case(spec: Spec) -> CaseSpec:
    cases = expand(spec)
    possible = (case for case in cases if not find_unsupported_reason(spec, case.parameters))
    return next(possible, cases[0])


def _build_expression(case: CaseSpec) -> str:
    return " and ".join(
        f"{axis} == {json.dumps(value, ensure_ascii=False)}"
        for axis, value in case.parameters.items()
    )
