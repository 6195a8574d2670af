"""One metric along the commits."""

from typing import Annotated, Literal

from django.http import HttpResponse
from ninja import Query, Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.histories import HistoryColumnsOut, HistoryOut, history_out
from orchestrator.benchmarks.selectors import benchmark_for, case_for
from orchestrator.fleet.selectors import host_named
from orchestrator.histories.charted import charted_by_names, charted_nothing
from orchestrator.histories.compact import compact_response, packed
from orchestrator.histories.data import history_data
from orchestrator.histories.histories import Part, history_at, series_or_empty

router = Router(tags=["results"])


@router.get(
    "/history",
    response=HistoryOut | HistoryColumnsOut,
    summary="Show the history of one metric",
)
def show_history(
    request: CallerRequest,
    benchmark: Text,
    metric: Annotated[Text, Query(description="For example requests.rate or latency.p99.")],
    case: Annotated[Text, Query(description="The key of a case of the benchmark.")],
    host: Annotated[Text, Query(description="The name of a host.")],
    project: Text | None = None,
    branch: Annotated[Text | None, Query(description="Default: the default branch.")] = None,
    format: Annotated[
        Literal["points", "columns"],
        Query(description="`columns` is for thousands of points: one list per property."),
    ] = "points",
    limit: Annotated[
        int | None, Query(ge=1, le=10_000, description="Of `points`: the number of newest points.")
    ] = None,
    before: Annotated[
        Text | None, Query(description="Of `points`: only points older than this commit.")
    ] = None,
) -> HistoryOut | HttpResponse:
    """The list of points is empty if nothing was measured yet."""
    member = request.auth.member
    if format == "columns":
        # In one query; the checks below find and report what is missing.
        known = charted_by_names(
            member, benchmark=benchmark, project=project, case=case, host=host, metric=metric
        )
        if known is not None:
            return compact_response(request, packed(history_data(known, branch or "")))
    chosen = benchmark_for(member, benchmark, project)
    series = series_or_empty(
        member,
        chosen,
        metric_key=metric,
        case=case_for(chosen, case),
        host=host_named(member, host),
    )
    if format == "columns":
        empty = history_data(charted_nothing(series), branch or "")
        return compact_response(request, packed(empty))
    part = Part(limit=limit, before=before or "")
    return history_out(history_at(series, branch or "", part))
