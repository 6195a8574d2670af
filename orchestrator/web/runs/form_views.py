"""The form of a run: a preview of its cost before it starts, and repeating a run."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.refs import FetchRunningError, resolve_as_fetched
from orchestrator.calibration.resolution import with_rounds
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.operations.fetch_waits import get_fetch_wait
from orchestrator.runs.models import Run, Schedule
from orchestrator.runs.plans import RunPlan, RunRequest, plan_run
from orchestrator.runs.rerun import request_again
from orchestrator.runs.schedules import create_schedule
from orchestrator.runs.selectors import load_run, load_schedule
from orchestrator.runs.services import create_run
from orchestrator.runs.wait_limits import get_wait_limit_s
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS, build_benchmark_key
from orchestrator.web.refs import load_chosen_run, load_ref_choices
from orchestrator.web.runs.default_commits import build_default_commits, follow_default_branch
from orchestrator.web.runs.form_page import build_form_context, render_run_form
from orchestrator.web.runs.forms import RunForm
from orchestrator.web.runs.placements import build_form_data
from orchestrator.web.schedules.forms import ScheduleForm
from orchestrator.web.sentences import build_sentence

PREFILLED = (
    "benchmark", "baseline", "contender", "second_contender", "rounds", "builds", "until",
    "resolution", "first_places", "budget", "wait_limit", "priority", "generator", "backend",
    "placements", "cases", "pairwise", "when", "at", "cron", "branch", "tags", "name",
)  # fmt: skip
REFS = ("baseline", "contender", "second_contender", "branch", "since", "until")


@for_member
def new_run(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the form, prefilled from the address or from an earlier run (`?again=`)."""
    if request.method != "POST":
        form = RunForm(member, initial=_build_initial_data(request, member))
        form.preselect_host()
        return render_run_form(request, form)
    form = RunForm(member, request.POST)
    default = "name" if form.is_valid() and form.starts != "now" else None
    made = form.create(lambda: _create(form, member), default)
    return render_run_form(request, form) if made is None else _redirect_to(request, made)


@for_member
@require_POST
def preview(request: HttpRequest, member: Member) -> HttpResponse:
    """Show what the run would take: htmx gets only the panel, a plain button the whole page.

    `?schedule=`: for the schedule that is edited.
    """
    schedule = _load_edited_schedule(request, member)
    fetch = None
    data = follow_default_branch(member, request.POST)
    form = (ScheduleForm if schedule else RunForm)(member, data)
    other_benchmark = form.choice is not None and not form.choice.is_shown
    if form.choice is not None:
        # Nothing starts yet: the response shows the grid of the newly chosen benchmark.
        form.choice.stale = False
    with resolve_as_fetched():
        try:
            plan = _plan_request(form, member) if form.is_valid() else None
        except FetchRunningError as error:
            fetch, plan = get_fetch_wait(request).hold(error), None
    if not request.headers.get("HX-Request"):
        return render_run_form(request, form, plan, schedule=schedule)
    _drop_errors_of_empty_fields(form)
    context = {
        **build_form_context(form, plan),
        "answer": True,
        "other_benchmark": other_benchmark,
        "fetch": fetch,
    }
    return render(request, "runs/new.html#answer", context)


@for_member
def refs(request: HttpRequest, member: Member) -> HttpResponse:
    """Return completions for a field of the form (`?for=`)."""
    field = request.GET.get("for", "")
    text = request.GET.get(field, "") if field in REFS else ""
    choices = load_ref_choices(member, request.GET.get("benchmark", ""), text[:200])
    return render(request, "runs/_ref_options.html", {"refs": choices})


@for_member
@require_POST
def run_again(request: HttpRequest, member: Member, run_id: UUID) -> HttpResponse:
    """Start the same commits, cases and placements again, at once."""
    run = load_run(member, run_id)
    try:
        again = create_run(member=member, request=request_again(run))
    except FORM_ERRORS as error:
        messages.error(request, build_sentence(f"The run was not started again: {error}"))
        return redirect(f"{reverse('run-new')}?again={run.pk}")
    wake_engine()
    return redirect("run", again.pk)


def _create(form: RunForm, member: Member) -> Run | Schedule:
    """Start the run; or save the schedule, if a run of it could be started today."""
    run_request = build_run_request(form, member)
    if form.starts == "now":
        run = create_run(member=member, request=run_request)
        wake_engine()
        return run
    return create_schedule(member=member, new=form.build_schedule())


def _redirect_to(request: HttpRequest, made: Run | Schedule) -> HttpResponse:
    if isinstance(made, Run):
        return redirect("run", made.pk)
    messages.success(request, f"The schedule “{made.name}” was created.")
    return redirect("schedules")


def _plan_request(form: RunForm, member: Member) -> RunPlan | None:
    try:
        return plan_run(member=member, request=build_run_request(form, member))
    except FORM_ERRORS as error:
        form.show_error(error)
        return None


def _drop_errors_of_empty_fields(form: RunForm) -> None:
    """While the form is being filled in, an empty field is no error."""
    for name in list(form.errors):
        if name in form.fields and not form[name].value():
            del form.errors[name]


def build_run_request(form: RunForm, member: Member) -> RunRequest:
    """Return the request with enough rounds to detect the wanted change, if there is one."""
    if form.wanted_change is None:
        return form.build_request()
    return with_rounds(member=member, request=form.build_request(), change=form.wanted_change)


def _build_initial_data(request: HttpRequest, member: Member) -> dict[str, Any]:
    if run := load_chosen_run(member, request.GET.get("again", "")):
        return _build_initial(run)
    given: dict[str, Any] = {name: request.GET[name] for name in PREFILLED if name in request.GET}
    commits = build_default_commits(member, given)
    return {**commits, **given, "hosts": request.GET.getlist("hosts")}


def _build_initial(run: Run) -> dict[str, Any]:
    shas = [variant.commit.short_sha for variant in run.variants.all()]
    return {
        "benchmark": build_benchmark_key(run.definition.benchmark),
        "baseline": shas[0],
        # A commit may be measured without a baseline.
        "contender": shas[1] if len(shas) > 1 else "",
        "second_contender": shas[2] if len(shas) > 2 else "",
        "cases": run.cases,
        "pairwise": run.pairwise,
        "rounds": run.rounds,
        "builds": None if run.builds == 1 else run.builds,
        "until": run.until,
        "first_places": run.places,
        "budget": None if run.budget_s is None else run.budget_s / 60,
        "wait_limit": get_wait_limit_s(run) / 3600,
        "priority": run.get_priority_display().lower(),
        **build_form_data(run),
    }


def _load_edited_schedule(request: HttpRequest, member: Member) -> Schedule | None:
    try:
        return load_schedule(member, UUID(request.GET["schedule"]))
    except (KeyError, ValueError):
        return None
