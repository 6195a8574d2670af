"""Texts for pull requests: one comment with a part for each benchmark, and commit statuses."""

from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from cli.pitwall.units import format_duration
from orchestrator.accounts.members import build_system_member
from orchestrator.comparisons.compare import compare_commits
from orchestrator.comparisons.formats import to_markdown
from orchestrator.comparisons.report import ComparisonReport
from orchestrator.comparisons.verdict_cache import load_verdict_cards
from orchestrator.core.errors import NotFoundError
from orchestrator.forges.clients.base import Status
from orchestrator.forges.models import BenchmarkRequest, PullRequest, RequestState
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED, RunState, describe_run_state
from orchestrator.stats.conclusion import FAILING

#: Forges refuse comments of more than 65,536 characters.
MOST_TEXT = 60_000
MOST_OPEN = 5


def build_comment(pull: PullRequest) -> str:
    """Return the comment in Markdown: the latest request of each benchmark, by name."""
    rows = pull.requests.select_related("run__definition__benchmark__project", "run__team")
    newest: dict[str, BenchmarkRequest] = {}
    for each in rows.order_by("-pk"):
        newest.setdefault(each.benchmark, each)
    parts = [_format_part(newest[name]) for name in sorted(newest)]
    text = "\n\n".join(["<!-- Pitwall updates this comment -->", *parts])
    return text[:MOST_TEXT]


def build_status(request: BenchmarkRequest) -> Status | None:
    """Return the status of the measured commit; None if nothing is known yet.

    A regression fails it, and a contender that fails itself. An inconclusive result is reported,
    but blocks nobody.
    """
    run = request.run
    if run is None:
        return None
    state, text = "pending", f"{run.state}"
    if run.state in RUN_ENDED:
        state, text = _load_outcome(run)
    context = f"pitwall/{request.benchmark}"
    return Status(state=state, context=context, text=text, url=run_url(run))


def run_url(run: Run) -> str:
    return settings.BASE_URL + reverse("run", args=[run.pk])


def _load_outcome(run: Run) -> tuple[str, str]:
    measured = run.state in (RunState.FINISHED, RunState.FAILED)
    cards = load_verdict_cards(build_system_member(run.team), [run])[run.pk] if measured else []
    card = next(iter(cards), None)
    if card is not None and card.verdict in FAILING:
        return "failure", f"{card.verdict}: {card.summary}"
    if run.state != RunState.FINISHED:
        return "error", describe_run_state(run.state)
    if card is None:
        return "error", "nothing could be compared"
    return "success", f"{card.verdict}: {card.summary}"


def _format_part(request: BenchmarkRequest) -> str:
    heading = f"### Benchmark `{request.benchmark}`"
    return f"{heading}\n\n{_format_message(request)}"


def _format_message(request: BenchmarkRequest) -> str:
    sha = f"`{request.head_sha[:10]}`"
    if request.state == RequestState.DECLINED:
        return f"Not measured: {_quote_text(request.message)}"
    if request.state == RequestState.WAITING:
        project = request.pull.connection.project
        page = settings.BASE_URL + reverse("project-forge", args=[project.slug])
        return (
            f"{sha} comes from a fork. A member of the team has to [approve it]({page}) before it "
            "runs on the team's hosts."
        )
    run = request.run
    if run is None:
        return "Requested; it will start in a moment."
    if run.state not in RUN_ENDED:
        clause = f"[{describe_run_state(run.state)}]({run_url(run)})"
        return f"{sha}, requested by `{request.requested_by}`: {clause}."
    return _format_result(request, run)


def _format_result(request: BenchmarkRequest, run: Run) -> str:
    baseline, *contenders = [each.commit for each in run.variants.select_related("commit")]
    parts = []
    if run.state != RunState.FINISHED:
        clause = describe_run_state(run.state).capitalize()
        parts.append(f"[{clause}]({run_url(run)}): {_quote_text(run.message)}")
    try:
        report = compare_commits(
            build_system_member(run.team),
            benchmark=run.definition.benchmark,
            baseline=baseline,
            contender=contenders[0],
            run=run,
        )
    except (NotFoundError, IndexError):
        return "\n\n".join(parts or [f"[The run]({run_url(run)}) has nothing to compare."])
    parts.append(to_markdown(report, _build_address(report)).strip())
    parts.append(_open_cases(report))
    footer = (
        f"[Run]({run_url(run)}) of {request.head_sha[:10]}, requested by `{request.requested_by}`."
    )
    return "\n\n".join([*filter(None, parts), f"<sub>{footer}</sub>"])


def _open_cases(report: ComparisonReport) -> str:
    """Return which cases are inconclusive, and how long it would take to settle them."""
    cases = [case for case in report.cases if case.outcome == "inconclusive"]
    if not cases:
        return ""
    times = [case.missing_s for case in cases if case.missing_s is not None]
    names = ", ".join(_quote_code(case.case.label) for case in cases[:MOST_OPEN])
    more = f" and {len(cases) - MOST_OPEN} more" if len(cases) > MOST_OPEN else ""
    many = f"{len(cases)} case{' is' if len(cases) == 1 else 's are'} inconclusive: {names}{more}."
    if out_of_reach := sum(case.out_of_reach for case in cases):
        many += f" {out_of_reach} may stay open, even with another run."
    if not times:
        return f"{many} The time needed to decide is unknown." if not out_of_reach else many
    known = "" if len(times) == len(cases) else f" for the {len(times)} with a known time"
    return f"{many} A decision would take about {format_duration(sum(times))}{known}."


def _build_address(report: ComparisonReport) -> str:
    benchmark = report.benchmark
    query = {
        "benchmark": f"{benchmark.project.slug}/{benchmark.slug}",
        "baseline": report.baseline.sha,
        "contender": report.contender.sha,
    }
    return f"{settings.BASE_URL}{reverse('compare')}?{urlencode(query)}"


def _quote_text(text: str) -> str:
    """Quote text of others so that it mentions nobody and links to nothing."""
    return _quote_code(text[:500]) if text.strip() else "see its page."


def _quote_code(text: str) -> str:
    flat = " ".join(text.split()).replace("`", "'")
    return f"`{flat}`"
