"""Schedules: runs that start by themselves."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.runs.schedules import (
    NewSchedule,
    create_schedule,
    delete_schedule,
    set_schedule_enabled,
)
from orchestrator.runs.selectors import schedules_of
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS, ScheduleForm
from orchestrator.web.refs import ref_choices


@for_member
def schedules(request: HttpRequest, member: Member) -> HttpResponse:
    form = ScheduleForm(member, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            create_schedule(member=member, new=_new_schedule(form))
        except FORM_ERRORS as error:
            form.show_error(error, default="name")
        else:
            return redirect("schedules")
    refs = ref_choices(member, form["benchmark"].value() or "")
    context = {"form": form, "schedules": schedules_of(member), "refs": refs}
    return render(request, "schedules.html", context, status=form.status)


@for_member
@require_POST
def enable(request: HttpRequest, member: Member, schedule_id: UUID) -> HttpResponse:
    """Turns a schedule on or off, as `enabled` says."""
    enabled = request.POST.get("enabled") == "true"
    set_schedule_enabled(member=member, schedule_id=schedule_id, enabled=enabled)
    return redirect("schedules")


@for_member
@require_POST
def delete(request: HttpRequest, member: Member, schedule_id: UUID) -> HttpResponse:
    delete_schedule(member=member, schedule_id=schedule_id)
    return redirect("schedules")


def _new_schedule(form: ScheduleForm) -> NewSchedule:
    data = form.cleaned_data
    project, _, benchmark = data["benchmark"].rpartition("/")
    return NewSchedule(
        name=data["name"],
        cron=data["cron"],
        benchmark=benchmark,
        project=project or None,
        baseline_ref=data["baseline"],
        contender_ref=data["contender"],
        cases=data["cases"],
        pairwise=data["pairwise"],
        hosts=tuple(data["hosts"]),
        **form.ending(),
    )
