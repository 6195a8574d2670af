"""One metric along the commits."""

from typing import Annotated

from ninja import Query, Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.histories import HistoryOut, history_out
from orchestrator.benchmarks.selectors import benchmark_for, case_for
from orchestrator.fleet.selectors import host_named
from orchestrator.results.histories import history_of

router = Router(tags=["results"])


@router.get("/history", response=HistoryOut, summary="Show one metric along the commits")
def show_history(
    request: CallerRequest,
    benchmark: Text,
    metric: Annotated[Text, Query(description="Such as requests.rate or latency.p99.")],
    case: Annotated[Text, Query(description="The key of a case of the benchmark.")],
    host: Annotated[Text, Query(description="The name of a host.")],
    project: Text | None = None,
) -> HistoryOut:
    """An empty list of points where nothing was measured yet."""
    member = request.auth.member
    chosen = benchmark_for(member, benchmark, project)
    return history_out(
        history_of(
            member,
            benchmark=chosen,
            metric_key=metric,
            case=case_for(chosen, case),
            host=host_named(member, host),
        )
    )
