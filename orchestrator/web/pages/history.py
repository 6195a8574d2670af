"""One metric of one case on one host along the commits."""

from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.results.histories import HistoryChoices, history_choices, history_of
from orchestrator.results.reports import History
from orchestrator.web.access import for_member
from orchestrator.web.charts import history_chart
from orchestrator.web.forms import benchmark_choices, benchmark_key
from orchestrator.web.host_facts import ShownChange, shown_change
from orchestrator.web.refs import chosen_benchmark

T = TypeVar("T")


@for_member
def history(request: HttpRequest, member: Member) -> HttpResponse:
    """Choices that are left out or no longer exist fall back on the first one."""
    benchmark = chosen_benchmark(member, request.GET.get("benchmark", ""))
    context: dict[str, Any] = {"benchmarks": benchmark_choices(member)}
    if benchmark is not None:
        choices = history_choices(member, benchmark)
        context |= {"key": benchmark_key(benchmark), "choices": choices}
        context |= _chosen(request, member, benchmark, choices)
    return render(request, "history.html", context)


def _chosen(
    request: HttpRequest, member: Member, benchmark: Benchmark, choices: HistoryChoices
) -> dict[str, Any]:
    case = _pick(choices.cases, "key", request.GET.get("case"))
    host = _pick(choices.hosts, "name", request.GET.get("host"))
    metric = _pick(choices.metrics, "key", request.GET.get("metric"))
    if case is None or host is None or metric is None:
        return {}
    found = history_of(member, benchmark=benchmark, metric_key=metric.key, case=case, host=host)
    urls = comparison_urls(found)
    rows = zip(found.points, urls, _changes(found), strict=True)
    return {
        "history": found,
        "rows": list(reversed(list(rows))),
        "chart": history_chart(found, urls) if found.points else None,
    }


def comparison_urls(found: History) -> list[str | None]:
    """For each point the address of its comparison with the point before; None for the first."""
    key = benchmark_key(found.benchmark)
    urls: list[str | None] = [None] if found.points else []
    for before, after in zip(found.points, found.points[1:], strict=False):
        query = {"benchmark": key, "baseline": before.commit.sha, "contender": after.commit.sha}
        urls.append(f"{reverse('compare')}?{urlencode(query)}")
    return urls


def _changes(found: History) -> list[list[ShownChange]]:
    """For each point how its host differs from that of the point before; newest first."""
    changes: list[list[ShownChange]] = [[] for _ in found.points]
    for each in reversed(found.changes):
        changes[each.before].append(shown_change(each.at, each.changed))
    return changes


def _pick(items: Sequence[T], attribute: str, wanted: str | None) -> T | None:
    chosen = (item for item in items if getattr(item, attribute) == wanted)
    return next(chosen, items[0] if items else None)
