"""Runs: the list, the live page of one, its trials, its cancellation, and its build logs."""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.core.page_cache import get_or_make_part
from orchestrator.dispatch.wakeups import wake_engine, wake_jobs
from orchestrator.measurements.removals import load_run_removals
from orchestrator.measurements.validity_issues import load_run_validity
from orchestrator.measurements.version_keys import read_runs_version
from orchestrator.retention.pins import pin_run
from orchestrator.runs.cancelling import cancel_case, cancel_job, cancel_run
from orchestrator.runs.job_details import build_for, load_job_details
from orchestrator.runs.models import Build
from orchestrator.runs.quiet_wait import end_quiet_waits
from orchestrator.runs.selectors import RunProgress, load_progress, load_run, load_runs, load_trials
from orchestrator.runs.states import BuildState, Validity
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.runs.presenters import Details, build_live_context, build_run_rows, hash_panel
from orchestrator.web.runs.trials_table import build_trials_table

RUNS_A_PAGE = 25
TRIALS_A_PAGE = 200


@open_to_visitors
@for_member
def runs(request: HttpRequest, member: Member) -> HttpResponse:
    number = request.GET.get("page", "1")
    known = int(number) if number.isdecimal() and len(number) < 7 else 1
    mark = read_runs_version(member, count=RUNS_A_PAGE, offset=max(0, known - 1) * RUNS_A_PAGE)
    key = ("runs", member.sight, member.role, number)
    body = get_or_make_part(key, mark, lambda: _list(request, member))
    return render(request, "runs/list.html", {"body": body})


@open_to_visitors
@for_member
def run(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    record = load_run(member, run_id)
    now = load_progress(record)
    context = build_live_context(request, member, record, now, _load_details(now))
    template = "runs/public.html" if isinstance(member, Visitor) else "runs/detail.html"
    return render(request, template, context)


@for_member
def progress(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    """Return the live panel; 304 if nothing has changed.

    The panel of an ended run stops polling.
    """
    record = load_run(member, run_id)
    now = load_progress(record)
    details = _load_details(now)
    tag = hash_panel(now, details)
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        response: HttpResponse = HttpResponseNotModified()
    else:
        context = build_live_context(request, member, record, now, details)
        response = render(request, "runs/detail.html#live", context)
    response.headers["ETag"] = tag
    response.headers["Cache-Control"] = "private, no-cache"
    return response


@open_to_visitors
@for_member
def trials(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    """List the trials. Invalid ones are only counted, unless `?invalid=1`."""
    record = load_run(member, run_id)
    with_invalid = request.GET.get("invalid") == "1"
    ordered = load_trials(record).order_by("job__host__name", "position")
    if not with_invalid:
        ordered = ordered.exclude(validity=Validity.INVALID)
    page = Paginator(ordered, TRIALS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "run": record,
        "page": page,
        "table": build_trials_table(record, list(page)),
        "with_invalid": with_invalid,
        "more": "&invalid=1" if with_invalid else "",
        "validity": load_run_validity([record.pk])[record.pk],
        "removed": list(load_run_removals(record.pk).values()),
    }
    return render(request, "runs/trials.html", context)


@for_member
@require_POST
def cancel(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    return _change_and_redirect(request, run_id, lambda: cancel_run(member=member, run_id=run_id))


@for_member
@require_POST
def cancel_part(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    """Cancel one case or one job of a run, depending on the button."""
    return _change_and_redirect(request, run_id, lambda: _cancel_part(request, member, run_id))


@for_member
@require_POST
def measure_now(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    """End the wait of the run's trials for quiet hosts."""

    def end_waits() -> None:
        end_quiet_waits(member=member, run_id=run_id)
        wake_engine()

    return _change_and_redirect(request, run_id, end_waits)


@for_member
def build_log(request: HttpRequest, member: Member, build_id: int) -> HttpResponse:
    """Show the page; htmx gets only the log, and 304 if it did not grow."""
    build = build_for(member, build_id)
    if request.headers.get("HX-Request"):
        response = _log_alone(request, build)
    else:
        response = render(request, "runs/build.html", _log_context(build))
    response.headers["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["HX-Request"])
    return response


@for_member
@require_POST
def add_pin(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    """Keep a run permanently, with the reason from the form."""
    pin_run(member=member, run_id=run_id, reason=request.POST.get("reason", ""))
    messages.success(request, "This run is pinned.")
    return redirect("run", run_id)


def _list(request: HttpRequest, member: Member) -> str:
    page = Paginator(load_runs(member), RUNS_A_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "runs": build_run_rows(member, page)}
    return render_to_string("runs/list.html#body", context, request)


def _change_and_redirect(
    request: HttpRequest, run_id: UUID, change: Callable[[], object]
) -> HttpResponse:
    """Return the run's page after a change; htmx gets the panel.

    A job that has ended in the meantime is no error for htmx: the panel shows it.
    """
    live = bool(request.headers.get("HX-Request"))
    try:
        change()
    except ConflictError:
        if not live:
            raise
    wake_jobs(run_id)
    return progress(request, run_id) if live else redirect("run", run_id)


def _cancel_part(request: HttpRequest, member: Member, run_id: UUID) -> None:
    job, case = request.POST.get("job", ""), request.POST.get("case", "")
    if job:
        try:
            cancel_job(member=member, run_id=run_id, job_id=UUID(job))
        except ValueError as error:
            raise InvalidRequestError("expected the id of a job", field="job") from error
    elif case.isdecimal() and len(case) < 19:
        cancel_case(member=member, run_id=run_id, case_id=int(case))
    else:
        raise InvalidRequestError("name the case or job to cancel", field="case")


def _load_details(now: RunProgress) -> Details:
    return load_job_details([part.job for part in now.jobs])


def _log_alone(request: HttpRequest, build: Build) -> HttpResponse:
    tag = _log_tag(build)
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        response: HttpResponse = HttpResponseNotModified()
    else:
        response = render(request, "runs/build.html#log", _log_context(build))
    response.headers["ETag"] = tag
    return response


def _log_context(build: Build) -> dict[str, object]:
    going_on = build.state == BuildState.BUILDING
    return {"build": build, "going_on": going_on, "tag": _log_tag(build)}


def _log_tag(build: Build) -> str:
    return f'"{build.state}-{build.log_offset}"'
