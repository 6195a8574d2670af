"""One metric along the commits."""

from typing import Annotated, Literal, NamedTuple

from django.http import HttpResponse
from ninja import Query, Router

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.histories import HistoryColumnsOut, HistoryOut, build_history_out
from orchestrator.benchmarks.selectors import load_benchmark, load_case
from orchestrator.fleet.selectors import load_host_by_name
from orchestrator.histories.data import build_history_data
from orchestrator.histories.histories import Part, load_series_history, load_series_or_empty
from orchestrator.histories.response import build_response, compress_text
from orchestrator.histories.series_header import build_empty_header, find_series_header_by_names
from orchestrator.results.models import Series

router = Router(tags=["histories"])


class _SeriesNames(NamedTuple):
    benchmark: str
    project: str | None
    case: str
    host: str
    metric: str


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
    member, names = request.auth.member, _SeriesNames(benchmark, project, case, host, metric)
    if format == "columns":
        return build_response(request, compress_text(_load_columns(member, names, branch or "")))
    part = Part(limit=limit, before=before or "")
    return build_history_out(load_series_history(_load_series(member, names), branch or "", part))


def _load_columns(member: Member, names: _SeriesNames, branch: str) -> str:
    """One query for a series that exists; otherwise an empty history, or the error."""
    header = find_series_header_by_names(member, **names._asdict())
    if header is None:
        header = build_empty_header(_load_series(member, names))
    return build_history_data(header, branch)


def _load_series(member: Member, names: _SeriesNames) -> Series:
    benchmark = load_benchmark(member, names.benchmark, names.project)
    return load_series_or_empty(
        member,
        benchmark,
        metric_key=names.metric,
        case=load_case(benchmark, names.case),
        host=load_host_by_name(member, names.host),
    )
