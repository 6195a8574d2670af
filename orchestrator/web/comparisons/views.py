"""Compare any two sides of a benchmark: commits, cases, hosts, tools, definitions."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import benchmarks_of
from orchestrator.comparisons.compare import compare_sides
from orchestrator.comparisons.formats import to_csv, to_json, to_markdown
from orchestrator.comparisons.report import CaseComparison, ComparisonReport, comparison_query
from orchestrator.comparisons.sides import (
    Side,
    SideQuery,
    load_choices,
    load_recent_commits,
    resolve_sides,
)
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.core.page_cache import kept
from orchestrator.measurements.version_keys import mark_of_results
from orchestrator.runs.models import Run
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.comparisons.heat_map import heat_map_view
from orchestrator.web.comparisons.presenters import (
    BAR,
    case_rows,
    case_view,
    columns_of,
    more_blocks,
)
from orchestrator.web.comparisons.view_options import ViewOptions, select_cases, view_options_of
from orchestrator.web.errors import status_of
from orchestrator.web.forms import benchmark_key, choices_among
from orchestrator.web.refs import chosen_benchmark, chosen_of, chosen_run

#: Parameters of a side in addresses, with their labels.
NARROWS = {
    "case": "Case",
    "host": "Host",
    "profile": "Hardware profile",
    "tool": "Load tool",
    "version": "Definition",
}
#: Format → (media type, label on the page).
FORMATS = {
    "md": ("text/markdown; charset=utf-8", "Markdown"),
    "csv": ("text/csv; charset=utf-8", "CSV"),
    "json": ("application/json", "JSON"),
}


@open_to_visitors
@for_member
def compare(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the form and, once both sides are named, the comparison or an error."""
    benchmarks = list(benchmarks_of(member))
    benchmark = chosen_of(benchmarks, member, request.GET.get("benchmark", ""))
    context = _form_context(request, benchmarks, benchmark)
    status = 200
    if benchmark and context["baseline"] and (context["contender"] or _sides_differ(request.GET)):
        if wanted := request.GET.get("format", ""):
            return _export(request, member, benchmark, wanted)
        try:
            context |= _cached_result(request, member, benchmark)
        except (NotFoundError, InvalidRequestError) as error:
            context["problem"] = str(error)
            status, _ = status_of(error)
    if benchmark and "report" not in context:
        context["commits"] = load_recent_commits(member, benchmark)
    return render(request, "comparisons/compare.html", context, status=status)


def _cached_result(request: HttpRequest, member: Member, benchmark: Benchmark) -> dict[str, Any]:
    """Return the context of the comparison, cached as long as nothing else is measured."""
    run = chosen_run(member, request.GET.get("run", ""))
    sides = _sides(request, member, benchmark)
    commits = [side.commit for side in sides]

    def made() -> dict[str, Any]:
        report = compare_sides(member, benchmark=benchmark, sides=sides, run=run, all_metrics=False)
        shown = _report_context(report, run, benchmark_key(benchmark), view_options_of(request.GET))
        if len(report.cases) > 1:
            return shown
        whole = compare_sides(member, benchmark=benchmark, sides=sides, run=run)
        return {**shown, **_case_context(whole, whole.cases[0])}

    pks = tuple(commit.pk for commit in commits)
    key = ("compare", member.sight, request.get_full_path(), pks)
    return kept(key, mark_of_results(benchmark, commits), made)


def _export(
    request: HttpRequest, member: Member, benchmark: Benchmark, wanted: str
) -> HttpResponse:
    """Return the comparison as a file; files for programs contain all metrics."""
    if wanted not in FORMATS:
        raise NotFoundError(f"there is no format {wanted}; there are {', '.join(FORMATS)}")
    run = chosen_run(member, request.GET.get("run", ""))
    sides = _sides(request, member, benchmark)
    report = compare_sides(
        member, benchmark=benchmark, sides=sides, run=run, all_metrics=wanted != "md"
    )
    address = _permalink(urlencode(comparison_query(report, run)))
    if wanted == "csv":
        text = to_csv(report)
    else:
        write = to_markdown if wanted == "md" else to_json
        text = write(report, address)
    name = f"{benchmark.slug}-{report.baseline.short_sha}-{report.contender.short_sha}.{wanted}"
    kind = "attachment" if wanted == "csv" else "inline"
    headers = {"Content-Disposition": f'{kind}; filename="{name}"'}
    return HttpResponse(text, content_type=FORMATS[wanted][0], headers=headers)


def _permalink(query: str) -> str:
    return f"{settings.BASE_URL}{reverse('compare')}?{query}"


@open_to_visitors
@for_member
def compare_case(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the details of a case: `of` is its key and `on` its host. htmx gets only this part."""
    benchmark = chosen_benchmark(member, request.GET.get("benchmark", ""))
    if benchmark is None:
        raise NotFoundError("the team has no benchmark yet")
    run = chosen_run(member, request.GET.get("run", ""))
    sides = _sides(request, member, benchmark)
    report = compare_sides(member, benchmark=benchmark, sides=sides, run=run)
    case = _find_case(report, request.GET.get("of", ""), request.GET.get("on", ""))
    key = benchmark_key(benchmark)
    query = comparison_query(report, run)
    context = {
        "report": report,
        "more": more_blocks(report, [case], key),
        "address": f"{reverse('compare')}?{urlencode(query)}",
        **_case_context(report, case),
    }
    part = "#case" if request.headers.get("HX-Request") else ""
    return render(request, f"comparisons/case.html{part}", context)


@open_to_visitors
@for_member
def choose(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the form with all fields of a side; htmx gets only the fields."""
    benchmarks = list(benchmarks_of(member))
    benchmark = chosen_of(benchmarks, member, request.GET.get("benchmark", ""))
    context = _form_context(request, benchmarks, benchmark)
    if benchmark is not None:
        choices = load_choices(member, benchmark)
        context["commits"] = load_recent_commits(member, benchmark)
        context["choices"] = [
            (name, title, getattr(choices, f"{name}s"), *_side_values(request.GET, name))
            for name, title in NARROWS.items()
        ]
    part = "#fields" if request.headers.get("HX-Request") else ""
    return render(request, f"comparisons/choose.html{part}", context)


def _form_context(
    request: HttpRequest, benchmarks: Sequence[Benchmark], benchmark: Benchmark | None
) -> dict[str, Any]:
    given = {name: value for name, value in request.GET.items() if value and name != "run"}
    narrowed = [
        (title, *_side_values(request.GET, name))
        for name, title in NARROWS.items()
        if any(_side_values(request.GET, name))
    ]
    return {
        "benchmarks": choices_among(benchmarks),
        "key": benchmark_key(benchmark) if benchmark else "",
        "baseline": request.GET.get("baseline", "").strip(),
        "contender": request.GET.get("contender", "").strip(),
        "run_id": request.GET.get("run", ""),
        "narrowed": narrowed,
        "hidden": [each for each in given.items() if each[0].removeprefix("contender_") in NARROWS],
        "choose": f"{reverse('compare-choose')}?{urlencode(given)}",
    }


def _side_values(given: Mapping[str, str], name: str) -> tuple[str, str]:
    return given.get(name, ""), given.get(f"contender_{name}", "")


def _sides_differ(given: Mapping[str, str]) -> bool:
    return any(given.get(f"contender_{name}") for name in NARROWS)


def _sides(request: HttpRequest, member: Member, benchmark: Benchmark) -> tuple[Side, Side]:
    return resolve_sides(
        member, benchmark, _side_request(request.GET, ""), _side_request(request.GET, "contender_")
    )


def _side_request(given: Mapping[str, str], prefix: str) -> SideQuery:
    values = {each.name: given.get(prefix + each.name, "").strip() for each in fields(SideQuery)}
    return SideQuery(
        **{**values, "commit": given.get("contender" if prefix else "baseline", "").strip()}
    )


def _find_case(report: ComparisonReport, key: str, host: str) -> CaseComparison:
    found = (case for case in report.cases if case.case.key == key and case.host.pk.hex == host)
    case = next(found, None)
    if case is None:
        raise NotFoundError("this comparison has no such case")
    return case


def _report_context(
    report: ComparisonReport, run: Run | None, key: str, options: ViewOptions
) -> dict[str, Any]:
    columns = columns_of(report)
    query = comparison_query(report, run)
    heat = heat_map_view(report, options, query)
    rows = select_cases(report, heat.map if heat else None, options, query)
    here = urlencode({**query, **options.query()})
    return {
        "report": report,
        # The first note of an unpaired comparison is shown above the others.
        "shown_notes": report.notes if report.paired else report.notes[1:],
        "columns": columns,
        "heat": heat,
        "chosen": rows,
        # Rendered here, so that both are cached with the rest: hundreds of rows take some time.
        "rows": render_to_string(
            "comparisons/_case_rows.html",
            {"rows": case_rows(rows.shown, columns, query, names_host=_several_hosts(report))},
        ),
        "tiles": render_to_string("comparisons/_heat_map.html", {"heat": heat}) if heat else "",
        "more": more_blocks(report, report.cases, key),
        "one_host": _one_host(report),
        "all_runs": urlencode({name: value for name, value in query.items() if name != "run"}),
        "here": here,
        "permalink": _permalink(here),
        "markdown": to_markdown(report, _permalink(urlencode(query))),
        "files": [
            (title, f"?{urlencode({**query, 'format': name})}")
            for name, (_, title) in FORMATS.items()
        ],
    }


def _case_context(report: ComparisonReport, case: CaseComparison) -> dict[str, Any]:
    return {"case": case_view(report, case, _legend_names(report)), **BAR}


def _one_host(report: ComparisonReport) -> str:
    """Return the host of all rows; empty if there are several."""
    hosts = {(case.host.name, case.contender_host.name) for case in report.cases}
    first, second = next(iter(hosts), ("", ""))
    return first if len(hosts) == 1 and first == second else ""


def _several_hosts(report: ComparisonReport) -> bool:
    return len({case.host.pk for case in report.cases}) > 1


def _legend_names(report: ComparisonReport) -> tuple[str, str]:
    """Return the names of the sides in the legends of charts: what the sides differ in."""
    baseline, contender = (side.query() for side in report.sides)
    differ = [name for name in contender if contender[name] != baseline.get(name)]
    if not differ or "commit" in differ:
        shas = report.baseline.short_sha[:7], report.contender.short_sha[:7]
        return f"baseline {shas[0]}", f"contender {shas[1]}"
    values = [[words.get(name, "") for name in differ] for words in (baseline, contender)]
    return f"baseline {' '.join(values[0])}".strip(), f"contender {' '.join(values[1])}".strip()
