"""The text for a README or a page that shows badges and a chart of a benchmark."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.sharing import build_public_address
from orchestrator.core.errors import NotFoundError
from orchestrator.histories.histories import load_history_choices, load_series_set
from orchestrator.results.models import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class BadgeText:
    """A badge; `path` is its address for members.

    `address` is that for everybody while the project is public.
    """

    name: str
    title: str
    path: str
    address: str
    markdown: str
    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartText:
    """A frame with the newest points of one series."""

    path: str
    address: str
    html: str


def load_badge_series(member: Member, benchmark: Benchmark, query: Mapping[str, str]) -> Series:
    """Return the series of `case`, `host` and `metric`; each defaults to the first measured one."""
    choices = load_history_choices(member, benchmark)
    cases = [each for each in choices.cases if query.get("case", "") in ("", each.key)]
    hosts = [each for each in choices.hosts if query.get("host", "") in ("", each.name)]
    metrics = [each for each in choices.metrics if query.get("metric", "") in ("", each.key)]
    series = list(load_series_set(member, benchmark, cases=cases, hosts=hosts, metrics=metrics))
    order = {each.key: place for place, each in enumerate(metrics)}
    series.sort(key=lambda each: (order[each.metric.key], each.case.label, each.host.name))
    if not series:
        problem = f"the benchmark {benchmark.slug} has no measured series at this address"
        raise NotFoundError(problem)
    return series[0]


def build_badge_texts(
    benchmark: Benchmark, query: Mapping[str, str]
) -> tuple[BadgeText, BadgeText]:
    """Return the badges of the newest value of the series, and of the newest verdict on its
    branch."""
    slug, branch = benchmark.slug, _build_branch_query(query)
    key = f"{benchmark.project.slug}/{slug}"
    history = f"{reverse('history')}?{urlencode({'benchmark': key, **query})}"
    return (
        _build_badge_text(benchmark, "badge-value", f"{slug}: newest value", query, history),
        _build_badge_text(
            benchmark, "badge-verdict", f"{slug}: newest verdict", branch, reverse("runs")
        ),
    )


def build_chart_text(series: Series, query: Mapping[str, str]) -> ChartText:
    benchmark = series.benchmark
    path = _with_query(reverse("embed", args=[series.pk]), _build_branch_query(query))
    address = _build_project_url(benchmark) + path
    html = (
        f'<iframe src="{address}" title="{benchmark.slug} along the commits" width="680" '
        'height="320" loading="lazy" style="border: 0; max-width: 100%"></iframe>'
    )
    return ChartText(path=path, address=address, html=html)


def _build_badge_text(
    benchmark: Benchmark, name: str, title: str, query: Mapping[str, str], leads: str
) -> BadgeText:
    root = _build_project_url(benchmark)
    path = _with_query(reverse(name, args=[benchmark.project.slug, benchmark.slug]), query)
    return BadgeText(
        name=name,
        title=title,
        path=path,
        address=root + path,
        markdown=f"[![{title}]({root}{path})]({root}{leads})",
        html=f'<a href="{root}{leads}"><img src="{root}{path}" alt="{title}"></a>',
    )


def _build_branch_query(query: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in query.items() if key == "branch"}


def _with_query(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _build_project_url(benchmark: Benchmark) -> str:
    return build_public_address(benchmark.project).rstrip("/")
