"""Forms of what people without an account see, and which page an address names."""

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.http import QueryDict
from django.urls import Resolver404, resolve

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import project_for
from orchestrator.benchmarks.sharing import MOST_DAYS, SharedPage
from orchestrator.core.errors import InvalidRequestError
from orchestrator.results.reporting.saved_reports import saved_report_for
from orchestrator.runs.selectors import run_for
from orchestrator.web.forms import TeamForm
from orchestrator.web.refs import chosen_benchmark
from orchestrator.web.visiting import SHAREABLE


class PublicForm(TeamForm):
    sure = forms.BooleanField(
        label="Anybody may see this from now on",
        error_messages={"required": "tick this to make the project public"},
    )


class ShareForm(TeamForm):
    page = forms.CharField(widget=forms.HiddenInput)
    days = forms.IntegerField(
        min_value=1, max_value=MOST_DAYS, initial=30, label="Days until the link ends"
    )


def shared_page(member: Member, address: str) -> SharedPage:
    """The page that an address of ours names; NotFoundError where the team has no such thing,
    InvalidRequestError for a page that cannot be shared."""
    parts = urlsplit(address)
    try:
        match = resolve(parts.path)
    except Resolver404 as error:
        raise InvalidRequestError("there is no such page to share", field="page") from error
    name = match.url_name or ""
    if name not in SHAREABLE:
        raise InvalidRequestError(
            "a run, a comparison, a report or a badge can be shared, and this is none",
            field="page",
        )
    given = {key: str(value) for key, value in match.kwargs.items()}
    project, title = _about(member, name, match.kwargs, QueryDict(parts.query))
    return SharedPage(project=project, page=name, given=given, query=parts.query, title=title)


def _about(member: Member, name: str, given: dict[str, Any], query: QueryDict) -> tuple[Any, str]:
    """The project of a page, and what the page is called in lists."""
    if name == "run":
        run = run_for(member, given["run_id"])
        benchmark = run.definition.benchmark
        return benchmark.project, f"Run of {benchmark.title}, {run.created_at:%Y-%m-%d %H:%M}"
    if name == "report":
        report = saved_report_for(member, given["slug"])
        return report.benchmark.project, f"Report {report.title}"
    if name == "compare":
        found: Benchmark | None = chosen_benchmark(member, query.get("benchmark", ""))
        sides = [query.get(each, "").strip()[:10] for each in ("baseline", "contender")]
        if found is None or not all(sides) or not query.get("benchmark"):
            raise InvalidRequestError(
                "choose a benchmark and two commits first: then their comparison can be shared",
                field="page",
            )
        return found.project, f"Comparison of {found.title}, {sides[0]} and {sides[1]}"
    project = project_for(member, given["project"])
    return project, f"Badge of {project.name}/{given['slug']}"
