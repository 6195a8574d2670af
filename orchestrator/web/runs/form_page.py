"""The page with the form of a run or schedule, and the estimate of what the run would take."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.calibration.forecasts import forecast_resolution
from orchestrator.calibration.resolution import estimate_resolution
from orchestrator.core.clock import utc_now
from orchestrator.dispatch.idle_checks import refresh_idle_checks
from orchestrator.runs.eta import estimate_finish
from orchestrator.runs.models import Schedule
from orchestrator.runs.plans import RunPlan
from orchestrator.runs.run_warnings import find_warnings
from orchestrator.runs.schedules import compute_next_time
from orchestrator.web.cases import list_planned_cases, load_expression_names
from orchestrator.web.forms import FORM_ERRORS
from orchestrator.web.refs import load_ref_choices
from orchestrator.web.runs.forms import RunForm
from orchestrator.web.runs.idle_check_views import build_idle_context


def render_run_form(
    request: HttpRequest,
    form: RunForm,
    plan: RunPlan | None = None,
    *,
    schedule: Schedule | None = None,
) -> HttpResponse:
    """Return the whole page. `plan`: that of the estimate. `schedule`: the one that is edited."""
    context = {**build_form_context(form, plan), "schedule": schedule}
    return render(request, "runs/new.html", context, status=form.status)


def build_form_context(form: RunForm, plan: RunPlan | None) -> dict[str, Any]:
    """Return the context of the form and its estimate, for the whole page or a part of it."""
    key = form["benchmark"].value() or ""
    shown = _build_estimate(plan, form) if plan else {}
    return {
        "form": form,
        "plan": plan,
        "choice": form.choice,
        "refs": load_ref_choices(form.member, key),
        "names": load_expression_names(form.member, key, plan),
        **shown,
    }


def _build_estimate(plan: RunPlan, form: RunForm) -> dict[str, Any]:
    now = utc_now()
    resolution = form.wanted_change
    idle_checks = build_idle_context(refresh_idle_checks(plan)) if form.starts == "now" else {}
    return {
        "chosen": list_planned_cases(plan),
        "job_s": _estimate_job_times(plan),
        "takes": _list_durations(plan),
        "cautions": find_warnings(plan),
        **idle_checks,
        "forecasts": forecast_resolution(plan) if resolution is None else [],
        "resolution": estimate_resolution(plan, resolution) if resolution is not None else None,
        "finish": estimate_finish(plan, form.member.team, now) if form.starts == "now" else None,
        "first": _compute_first_start(form, now),
        "starts": form.starts,
    }


def _compute_first_start(form: RunForm, now: datetime) -> datetime | None:
    """Return when a cron schedule would start its first run; None if the form has an error."""
    if form.starts not in ("nightly", "cron"):
        return None
    try:
        return compute_next_time(form.cleaned_data["cron"], now)
    except FORM_ERRORS as error:
        form.show_error(error)
        return None


def _estimate_job_times(plan: RunPlan) -> tuple[float, float]:
    """Return the approximate times of the shortest and the longest job."""
    trials_a_case = len(plan.commits) * plan.blocks.typical
    times = [sum(plan.trial_s[case] for case in part) * trials_a_case for part in plan.parts]
    return min(times), max(times)


def _list_durations(plan: RunPlan) -> list[float]:
    """Return minimum, usual and maximum seconds; equal values once."""
    blocks = plan.blocks
    times = [plan.estimate_seconds(each) for each in (blocks.least, blocks.typical, blocks.most)]
    return list(dict.fromkeys(times))
