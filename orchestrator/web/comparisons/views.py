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
from orchestrator.benchmarks.selectors import load_benchmarks
from orchestrator.comparisons.compare import compare_sides
from orchestrator.comparisons.formats import to_csv, to_json, to_markdown
from orchestrator.comparisons.report import CaseComparison, ComparisonReport, build_comparison_query
from orchestrator.comparisons.sides import (
    Side,
    SideQuery,
    load_choices,
    load_recent_commits,
    resolve_sides,
)
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.core.page_cache import get_or_make_part
from orchestrator.measurements.version_keys import read_results_version
from orchestrator.runs.models import Run
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.comparisons.heat_map import build_heat_map_view
from orchestrator.web.comparisons.presenters import (
    BAR,
    build_case_rows,
    build_case_view,
    build_columns,
    plan_more_blocks,
)
from orchestrator.web.comparisons.view_options import ViewOptions, parse_view_options, select_cases
from orchestrator.web.errors import find_status
from orchestrator.web.forms import build_benchmark_key, build_choices
from orchestrator.web.refs import find_chosen_benchmark, load_chosen_benchmark, load_chosen_run

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
    benchmarks = list(load_benchmarks(member))
    benchmark = find_chosen_benchmark(benchmarks, member, request.GET.get("benchmark", ""))
    context = _build_form_context(request, benchmarks, benchmark)
    status = 200
    if benchmark and context["baseline"] and (context["contender"] or _has_two_sides(request.GET)):
        if wanted := request.GET.get("format", ""):
            return _export(request, member, benchmark, wanted)
        try:
            context |= _load_cached_result(request, member, benchmark)
        except (NotFoundError, InvalidRequestError) as error:
            context["problem"] = str(error)
            status, _ = find_status(error)
    if benchmark and "report" not in context:
        context["commits"] = load_recent_commits(member, benchmark)
    return render(request, "comparisons/compare.html", context, status=status)


def _load_cached_result(
    request: HttpRequest, member: Member, benchmark: Benchmark
) -> dict[str, Any]:
    """Return the context of the comparison, cached as long as nothing else is measured."""
    run = load_chosen_run(member, request.GET.get("run", ""))
    sides = _load_sides(request, member, benchmark)
    commits = [side.commit for side in sides]

    def made() -> dict[str, Any]:
        report = compare_sides(member, benchmark=benchmark, sides=sides, run=run, all_metrics=False)
        shown = _report_context(
            report, run, build_benchmark_key(benchmark), parse_view_options(request.GET)
        )
        if len(report.cases) > 1:
            return shown
        whole = compare_sides(member, benchmark=benchmark, sides=sides, run=run)
        return {**shown, **_build_case_context(whole, whole.cases[0])}

    pks = tuple(commit.pk for commit in commits)
    key = ("compare", member.sight, request.get_full_path(), pks)
    return get_or_make_part(key, read_results_version(benchmark, commits), made)


def _export(
    request: HttpRequest, member: Member, benchmark: Benchmark, wanted: str
) -> HttpResponse:
    """Return the comparison as a file; files for programs contain all metrics."""
    if wanted not in FORMATS:
        raise NotFoundError(f"there is no format {wanted}; there are {', '.join(FORMATS)}")
    run = load_chosen_run(member, request.GET.get("run", ""))
    sides = _load_sides(request, member, benchmark)
    report = compare_sides(
        member, benchmark=benchmark, sides=sides, run=run, all_metrics=wanted != "md"
    )
    address = _build_permalink(urlencode(build_comparison_query(report, run)))
    if wanted == "csv":
        text = to_csv(report)
    else:
        write = to_markdown if wanted == "md" else to_json
        text = write(report, address)
    name = f"{benchmark.slug}-{report.baseline.short_sha}-{report.contender.short_sha}.{wanted}"
    kind = "attachment" if wanted == "csv" else "inline"
    headers = {"Content-Disposition": f'{kind}; filename="{name}"'}
    return HttpResponse(text, content_type=FORMATS[wanted][0], headers=headers)


def _build_permalink(query: str) -> str:
    return f"{settings.BASE_URL}{reverse('compare')}?{query}"


@open_to_visitors
@for_member
def compare_case(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the details of a case: `of` is its key and `on` its host. htmx gets only this part."""
    benchmark = load_chosen_benchmark(member, request.GET.get("benchmark", ""))
    if benchmark is None:
        raise NotFoundError("the team has no benchmark yet; define one first")
    run = load_chosen_run(member, request.GET.get("run", ""))
    sides = _load_sides(request, member, benchmark)
    report = compare_sides(member, benchmark=benchmark, sides=sides, run=run)
    case = _find_case(report, request.GET.get("case_key", ""), request.GET.get("host_id", ""))
    key = build_benchmark_key(benchmark)
    query = build_comparison_query(report, run)
    context = {
        "report": report,
        "more": plan_more_blocks(report, [case], key),
        "address": f"{reverse('compare')}?{urlencode(query)}",
        **_build_case_context(report, case),
    }
    part = "#case" if request.headers.get("HX-Request") else ""
    return render(request, f"comparisons/case.html{part}", context)


@open_to_visitors
@for_member
def choose(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the form with all fields of a side; htmx gets only the fields."""
    benchmarks = list(load_benchmarks(member))
    benchmark = find_chosen_benchmark(benchmarks, member, request.GET.get("benchmark", ""))
    context = _build_form_context(request, benchmarks, benchmark)
    if benchmark is not None:
        choices = load_choices(member, benchmark)
        context["commits"] = load_recent_commits(member, benchmark)
        context["choices"] = [
            (name, title, getattr(choices, f"{name}s"), *_read_side_values(request.GET, name))
            for name, title in NARROWS.items()
        ]
    part = "#fields" if request.headers.get("HX-Request") else ""
    return render(request, f"comparisons/choose.html{part}", context)


def _build_form_context(
    request: HttpRequest, benchmarks: Sequence[Benchmark], benchmark: Benchmark | None
) -> dict[str, Any]:
    given = {name: value for name, value in request.GET.items() if value and name != "run"}
    narrowed = [
        (title, *_read_side_values(request.GET, name))
        for name, title in NARROWS.items()
        if any(_read_side_values(request.GET, name))
    ]
    return {
        "benchmarks": build_choices(benchmarks),
        "key": build_benchmark_key(benchmark) if benchmark else "",
        "baseline": request.GET.get("baseline", "").strip(),
        "contender": request.GET.get("contender", "").strip(),
        "run_id": request.GET.get("run", ""),
        "narrowed": narrowed,
        "hidden": [each for each in given.items() if each[0].removeprefix("contender_") in NARROWS],
        "choose": f"{reverse('compare-choose')}?{urlencode(given)}",
    }


def _read_side_values(given: Mapping[str, str], name: str) -> tuple[str, str]:
    return given.get(name, ""), given.get(f"contender_{name}", "")


def _has_two_sides(given: Mapping[str, str]) -> bool:
    return any(given.get(f"contender_{name}") for name in NARROWS)


def _load_sides(request: HttpRequest, member: Member, benchmark: Benchmark) -> tuple[Side, Side]:
    return resolve_sides(
        member,
        benchmark,
        _build_side_query(request.GET, ""),
        _build_side_query(request.GET, "contender_"),
    )


def _build_side_query(given: Mapping[str, str], prefix: str) -> SideQuery:
    values = {each.name: given.get(prefix + each.name, "").strip() for each in fields(SideQuery)}
    return SideQuery(
        **{**values, "commit": given.get("contender" if prefix else "baseline", "").strip()}
    )


def _find_case(report: ComparisonReport, key: str, host: str) -> CaseComparison:
    matches = (case for case in report.cases if case.case.key == key and case.host.pk.hex == host)
    case = next(matches, None)
    if case is None:
        problem = "this comparison has no such case; go back to the comparison and choose one"
        raise NotFoundError(problem)
    return case


def _report_context(
    report: ComparisonReport, run: Run | None, key: str, options: ViewOptions
) -> dict[str, Any]:
    columns = build_columns(report)
    query = build_comparison_query(report, run)
    heat = build_heat_map_view(report, options, query)
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
            {
                "rows": build_case_rows(
                    rows.shown, columns, query, names_host=_has_several_hosts(report)
                )
            },
        ),
        "tiles": render_to_string("comparisons/_heat_map.html", {"heat": heat}) if heat else "",
        "more": plan_more_blocks(report, report.cases, key),
        "one_host": _find_single_host(report),
        "all_runs": urlencode({name: value for name, value in query.items() if name != "run"}),
        "here": here,
        "permalink": _build_permalink(here),
        "markdown": to_markdown(report, _build_permalink(urlencode(query))),
        "files": [
            (title, f"?{urlencode({**query, 'format': name})}")
            for name, (_, title) in FORMATS.items()
        ],
    }


def _build_case_context(report: ComparisonReport, case: CaseComparison) -> dict[str, Any]:
    return {"case": build_case_view(report, case, _build_legend_names(report)), **BAR}


def _find_single_host(report: ComparisonReport) -> str:
    """Return the host of all rows; empty if there are several."""
    hosts = {(case.host.name, case.contender_host.name) for case in report.cases}
    first, second = next(iter(hosts), ("", ""))
    return first if len(hosts) == 1 and first == second else ""


def _has_several_hosts(report: ComparisonReport) -> bool:
    return len({case.host.pk for case in report.cases}) > 1


def _build_legend_names(report: ComparisonReport) -> tuple[str, str]:
    """Return the names of the sides in the legends of charts: what the sides differ in."""
    baseline, contender = (side.query() for side in report.sides)
    differ = [name for name in contender if contender[name] != baseline.get(name)]
    if not differ or "commit" in differ:
        shas = report.baseline.short_sha[:7], report.contender.short_sha[:7]
        return f"baseline {shas[0]}", f"contender {shas[1]}"
    values = [[words.get(name, "") for name in differ] for words in (baseline, contender)]
    return f"baseline {' '.join(values[0])}".strip(), f"contender {' '.join(values[1])}".strip()
