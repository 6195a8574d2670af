"""Any two commits of a benchmark side by side."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import commit_for
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.results.comparisons import commits_measured, compare_commits
from orchestrator.results.reports import ComparisonReport
from orchestrator.runs.models import Run
from orchestrator.web.access import for_member
from orchestrator.web.charts import BAR_WIDTH, case_view
from orchestrator.web.forms import benchmark_choices, benchmark_key
from orchestrator.web.middleware import status_of
from orchestrator.web.refs import chosen_benchmark, chosen_run


@for_member
def compare(request: HttpRequest, member: Member) -> HttpResponse:
    """The form and, once both commits are named, the comparison or why there is none."""
    benchmark = chosen_benchmark(member, request.GET.get("benchmark", ""))
    baseline = request.GET.get("baseline", "").strip()
    contender = request.GET.get("contender", "").strip()
    context: dict[str, Any] = {
        "benchmarks": benchmark_choices(member),
        "key": benchmark_key(benchmark) if benchmark else "",
        "commits": commits_measured(member, benchmark) if benchmark else [],
        "baseline": baseline,
        "contender": contender,
        "run_id": request.GET.get("run", ""),
    }
    status = 200
    if benchmark and baseline and contender:
        try:
            run = chosen_run(member, request.GET.get("run", ""))
            report = _report(member, benchmark, baseline, contender, run)
            context |= _shown(report)
        except (NotFoundError, InvalidRequestError) as error:
            context["problem"] = str(error)
            status, _ = status_of(error)
    return render(request, "compare.html", context, status=status)


def _report(
    member: Member, benchmark: Benchmark, baseline: str, contender: str, run: Run | None
) -> ComparisonReport:
    return compare_commits(
        member,
        benchmark=benchmark,
        baseline=commit_for(member, benchmark, baseline),
        contender=commit_for(member, benchmark, contender),
        run=run,
    )


def _shown(report: ComparisonReport) -> dict[str, Any]:
    names = (
        f"baseline {report.baseline.short_sha[:7]}",
        f"contender {report.contender.short_sha[:7]}",
    )
    return {
        "report": report,
        "cases": [case_view(case, *names) for case in report.cases],
        "bar_width": BAR_WIDTH,
        "half": f"{BAR_WIDTH / 2:.0f}",
    }
