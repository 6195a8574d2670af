"""The page of a project that a shared link shows to everybody."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from django.http import QueryDict
from django.urls import Resolver404, resolve

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.selectors import load_benchmark_by_key, load_project
from orchestrator.benchmarks.sharing import SHAREABLE, SharedPage
from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.saved_reports import load_saved_report
from orchestrator.runs.selectors import load_run

_NOT_SHAREABLE = "this page cannot be shared; share a run, a comparison, a report or a badge"


def resolve_shared_page(member: Member, address: str) -> SharedPage:
    """Find the page of an address.

    NotFoundError if the team has no such object, InvalidRequestError if the page cannot be shared.
    """
    try:
        parts = urlsplit(address)
        match = resolve(parts.path)
    except (Resolver404, ValueError) as error:
        raise InvalidRequestError(_NOT_SHAREABLE, field="page") from error
    name = match.url_name or ""
    if name not in SHAREABLE or "\0" in unquote(address):
        raise InvalidRequestError(_NOT_SHAREABLE, field="page")
    parameters = {key: str(value) for key, value in match.kwargs.items()}
    project, title = _load_page_info(member, name, match.kwargs, QueryDict(parts.query))
    return SharedPage(
        project=project, page=name, parameters=parameters, query=parts.query, title=title
    )


def _load_page_info(
    member: Member, name: str, parameters: Mapping[str, Any], query: QueryDict
) -> tuple[Project, str]:
    """Return the project of a page, and its name in lists."""
    if name == "run":
        run = load_run(member, parameters["run_id"])
        benchmark = run.definition.benchmark
        return benchmark.project, f"Run of {benchmark.title}, {run.created_at:%Y-%m-%d %H:%M}"
    if name == "report":
        report = load_saved_report(member, parameters["slug"])
        return report.benchmark.project, f"Report {report.title}"
    if name == "compare":
        return _load_comparison_info(member, query)
    project = load_project(member, parameters["project"])
    return project, f"Badge of {project.name}/{parameters['slug']}"


def _load_comparison_info(member: Member, query: QueryDict) -> tuple[Project, str]:
    key = query.get("benchmark", "")
    sides = [query.get(each, "").strip()[:10] for each in ("baseline", "contender")]
    if not key or not all(sides):
        raise InvalidRequestError(
            "choose a benchmark and two commits first: then their comparison can be shared",
            field="page",
        )
    benchmark = load_benchmark_by_key(member, key)
    return benchmark.project, f"Comparison of {benchmark.title}, {sides[0]} and {sides[1]}"
