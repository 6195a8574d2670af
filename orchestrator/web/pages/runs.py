"""Runs: the list, one run live, its trials, its end."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.http import parse_etags
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.core.ids import digest_of
from orchestrator.results.reporting.saved_reports import saved_reports
from orchestrator.results.retention.pins import pin_of
from orchestrator.results.retention.removed import removals_of
from orchestrator.results.trials.doubts import doubts_of
from orchestrator.runs.job_details import JobDetails, details_of
from orchestrator.runs.marks import mark_of_runs
from orchestrator.runs.models import Job, Run
from orchestrator.runs.selectors import RunProgress, progress_of, run_for, runs_of, trials_of
from orchestrator.runs.services import cancel_run
from orchestrator.runs.states import RUN_ENDED, TrialState, Validity
from orchestrator.web.access import for_member
from orchestrator.web.forms import benchmark_key
from orchestrator.web.kept import kept
from orchestrator.web.verdicts import rows_of_runs, verdict_cards

RUNS_A_PAGE = 25
TRIALS_A_PAGE = 200
LATEST_TRIALS = 40
SHOWN_CASES = 60

Details = Mapping[UUID, JobDetails]


@for_member
def runs(request: HttpRequest, member: Member) -> HttpResponse:
    number = request.GET.get("page", "1")
    known = int(number) if number.isdecimal() and len(number) < 7 else 1
    mark = mark_of_runs(member, count=RUNS_A_PAGE, offset=max(0, known - 1) * RUNS_A_PAGE)
    key = ("runs", member.team.pk, member.role, number)
    body = kept(key, mark, lambda: _list(request, member))
    return render(request, "runs/list.html", {"body": body})


def _list(request: HttpRequest, member: Member) -> str:
    page = Paginator(runs_of(member), RUNS_A_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "runs": rows_of_runs(member, page)}
    return render_to_string("runs/list.html#body", context, request)


@for_member
def run(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    found = run_for(member, run_id)
    now = progress_of(found)
    kept = {"removed": list(removals_of(found.pk).values()), "pin": pin_of(found)}
    return render(request, "runs/detail.html", _live(member, found, now, _details(now)) | kept)


@for_member
def progress(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    """The live panel; 304 when nothing moved. A run that has ended asks for its whole page."""
    found = run_for(member, run_id)
    now = progress_of(found)
    details = _details(now)
    tag = entity_tag(now, details)
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        response: HttpResponse = HttpResponseNotModified()
    else:
        response = render(request, "runs/detail.html#live", _live(member, found, now, details))
    if found.state in RUN_ENDED and request.headers.get("HX-Request"):
        response.headers["HX-Refresh"] = "true"
    response.headers["ETag"] = tag
    response.headers["Cache-Control"] = "private, no-cache"
    return response


@for_member
def trials(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    """All but the invalid ones, which are counted; with `?invalid=1` those as well."""
    found = run_for(member, run_id)
    with_invalid = request.GET.get("invalid") == "1"
    ordered = trials_of(found).order_by("job__host__name", "position")
    if not with_invalid:
        ordered = ordered.exclude(validity=Validity.INVALID)
    context = {
        "run": found,
        "page": Paginator(ordered, TRIALS_A_PAGE).get_page(request.GET.get("page")),
        "with_invalid": with_invalid,
        "more": "&invalid=1" if with_invalid else "",
        "doubts": doubts_of([found.pk])[found.pk],
        "removed": list(removals_of(found.pk).values()),
    }
    return render(request, "runs/trials.html", context)


@for_member
@require_POST
def cancel(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    cancel_run(member=member, run_id=run_id)
    return redirect("run", run_id)


def entity_tag(now: RunProgress, details: Details) -> str:
    """Changes when anything moves that the live panel shows, the passing of time aside."""
    jobs = [
        [
            *_shown_of(part.job),
            part.trials_done,
            part.trials_failed,
            [each.text for each in part.standings],
            *_shown_beside(details[part.job.pk]),
        ]
        for part in now.jobs
    ]
    cancelled = now.run.cancel_requested_at is not None
    return f'"{digest_of([now.run.state, now.run.message, cancelled, jobs])[:32]}"'


def _shown_of(job: Job) -> list[object]:
    return [job.state, job.phase, job.message, job.round, job.attempt, str(job.current_trial),
            str(job.not_before)]  # fmt: skip


def _shown_beside(details: JobDetails) -> list[object]:
    builds = [[each.pk, each.state, each.seconds, each.log_offset] for each in details.builds]
    return [details.waiting, [str(place.host_id) for place in details.placements], builds]


def _details(now: RunProgress) -> Details:
    return details_of([part.job for part in now.jobs])


def _live(member: Member, found: Run, now: RunProgress, details: Details) -> dict[str, Any]:
    done = trials_of(found).filter(state__in=[TrialState.MEASURED, TrialState.FAILED])
    return {
        "run": found,
        "progress": now,
        "jobs": [(part, details[part.job.pk]) for part in now.jobs],
        "share": round(100 * now.trials_done / now.trials_total) if now.trials_total else 0,
        "ended": found.state in RUN_ENDED,
        **_cases(now),
        "poll_headers": json.dumps({"If-None-Match": entity_tag(now, details)}),
        "took_s": _took_s(found),
        "cards": verdict_cards(member, found),
        "doubts": doubts_of([found.pk])[found.pk],
        "trials": done.order_by("-ended_at", "-position")[:LATEST_TRIALS],
        "benchmark_key": benchmark_key(found.definition.benchmark),
        "reports": saved_reports(member).filter(benchmark=found.definition.benchmark),
    }


def _cases(now: RunProgress) -> dict[str, Any]:
    """Where the cases stand: those that still matter first."""
    ranks = {"open": 0, "undecided": 1, "decided": 2, "screened out": 3}
    standings = sorted(now.standings, key=lambda each: ranks[each.state])
    return {
        "measured": now.trials_done - now.trials_not_needed,
        "settled": sum(each.state in {"decided", "screened out"} for each in standings),
        "shown_standings": standings[:SHOWN_CASES],
        "hidden_standings": len(standings[SHOWN_CASES:]),
        "several_hosts": len({each.job.host_id for each in standings}) > 1,
    }


def _took_s(found: Run) -> float | None:
    if found.started_at is None or found.ended_at is None:
        return None
    return (found.ended_at - found.started_at).total_seconds()
