"""Asking for a run: the form, and what the run would take before it is started."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.dispatch.waking import wake_engine
from orchestrator.results.hosts.forecasts import forecasts_of
from orchestrator.runs.cautions import cautions_of
from orchestrator.runs.models import Run
from orchestrator.runs.plans import RunPlan, RunRequest, plan_run
from orchestrator.runs.services import create_run
from orchestrator.web.access import for_member
from orchestrator.web.cases import case_names, chosen_cases
from orchestrator.web.forms import FORM_ERRORS, RunForm, benchmark_key
from orchestrator.web.placements import form_data_of
from orchestrator.web.refs import chosen_run, ref_choices

PREFILLED = (
    "benchmark", "baseline", "contender", "second_contender", "rounds", "until", "budget",
    "priority", "generator", "backend", "placements", "cases", "pairwise",
)  # fmt: skip


@for_member
def new_run(request: HttpRequest, member: Member) -> HttpResponse:
    """The form; prefilled from the address, or from an earlier run (`?again=`)."""
    if request.method != "POST":
        return _page(request, RunForm(member, initial=_initial(request, member)))
    form = RunForm(member, request.POST)
    if form.is_valid():
        try:
            run = create_run(member=member, request=_run_request(form))
        except FORM_ERRORS as error:
            form.show_error(error)
        else:
            wake_engine()
            return redirect("run", run.pk)
    return _page(request, form)


@for_member
@require_POST
def preview(request: HttpRequest, member: Member) -> HttpResponse:
    """What the run would take: the panel alone for htmx, the whole page for a plain button."""
    form = RunForm(member, request.POST)
    plan = _plan(form, member) if form.is_valid() else None
    if not request.headers.get("HX-Request"):
        return _page(request, form, plan)
    _forget_what_is_missing(form)
    return render(request, "runs/new.html#answer", {**_context(form, plan), "answer": True})


def _plan(form: RunForm, member: Member) -> RunPlan | None:
    try:
        return plan_run(member=member, request=_run_request(form))
    except FORM_ERRORS as error:
        form.show_error(error)
        return None


def _forget_what_is_missing(form: RunForm) -> None:
    """While somebody is still typing, an empty field is no mistake."""
    for name in list(form.errors):
        if name in form.fields and not form[name].value():
            del form.errors[name]


def _run_request(form: RunForm) -> RunRequest:
    data = form.cleaned_data
    project, _, benchmark = data["benchmark"].rpartition("/")
    contenders = (data["contender"], data["second_contender"])
    return RunRequest(
        project=project,
        benchmark=benchmark,
        baseline=data["baseline"],
        cases=data["cases"],
        pairwise=data["pairwise"],
        contenders=tuple(ref for ref in contenders if ref),
        hosts=form.asked_hosts(),
        placements=form.asked_placements(),
        **form.ending(),
        priority=data["priority"] or "normal",
    )


def _initial(request: HttpRequest, member: Member) -> dict[str, Any]:
    if run := chosen_run(member, request.GET.get("again", "")):
        return _again(run)
    given: dict[str, Any] = {name: request.GET[name] for name in PREFILLED if name in request.GET}
    return {**given, "hosts": request.GET.getlist("hosts")}


def _again(run: Run) -> dict[str, Any]:
    shas = [variant.commit.short_sha for variant in run.variants.all()]
    return {
        "benchmark": benchmark_key(run.definition.benchmark),
        "baseline": shas[0],
        # One commit may have been measured alone.
        "contender": shas[1] if len(shas) > 1 else "",
        "second_contender": shas[2] if len(shas) > 2 else "",
        "cases": run.cases,
        "pairwise": run.pairwise,
        "rounds": run.rounds,
        "until": run.until,
        "budget": None if run.budget_s is None else run.budget_s / 60,
        "priority": run.get_priority_display().lower(),
        **form_data_of(run),
    }


def _page(request: HttpRequest, form: RunForm, plan: RunPlan | None = None) -> HttpResponse:
    return render(request, "runs/new.html", _context(form, plan), status=form.status)


def _context(form: RunForm, plan: RunPlan | None) -> dict[str, Any]:
    key = form["benchmark"].value() or ""
    shown = _shown(plan) if plan else {}
    return {
        "form": form,
        "plan": plan,
        "refs": ref_choices(form.member, key),
        "names": case_names(form.member, key, plan),
        **shown,
    }


def _shown(plan: RunPlan) -> dict[str, Any]:
    return {
        "chosen": chosen_cases(plan),
        "job_s": _job_times(plan),
        "takes": _takes(plan),
        "cautions": cautions_of(plan),
        "forecasts": forecasts_of(plan),
    }


def _job_times(plan: RunPlan) -> tuple[float, float]:
    """About how long the shortest and the longest job take."""
    trials_a_case = len(plan.commits) * plan.blocks.typical
    times = [sum(plan.trial_s[case] for case in part) * trials_a_case for part in plan.parts]
    return min(times), max(times)


def _takes(plan: RunPlan) -> list[float]:
    """Seconds at least, as a rule, at most; each once where they are the same."""
    blocks = plan.blocks
    times = [plan.seconds_of(each) for each in (blocks.least, blocks.typical, blocks.most)]
    return list(dict.fromkeys(times))
