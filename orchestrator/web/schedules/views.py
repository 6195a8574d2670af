"""Schedules: runs that start automatically."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.runs.models import Schedule
from orchestrator.runs.schedules import (
    change_schedule,
    delete_schedule,
    set_schedule_enabled,
)
from orchestrator.runs.selectors import load_schedule, load_schedules
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.runs.form_page import render_run_form
from orchestrator.web.runs.form_views import build_run_request
from orchestrator.web.schedules.forms import ScheduleForm, build_initial_schedule


@for_member
def schedules(request: HttpRequest, member: Member) -> HttpResponse:
    """List the schedules; new ones are created with the form of a run."""
    return render(request, "schedules/list.html", {"schedules": load_schedules(member)})


@for_member
@require_POST
def enable(request: HttpRequest, member: Member, schedule_id: UUID) -> HttpResponse:
    """Turn a schedule on or off according to `enabled`."""
    enabled = request.POST.get("enabled") == "true"
    set_schedule_enabled(member=member, schedule_id=schedule_id, enabled=enabled)
    return redirect("schedules")


def _ask_deletion(request: HttpRequest, member: Member, schedule_id: UUID) -> ConfirmationPage:
    schedule = load_schedule(member, schedule_id)
    return ConfirmationPage(
        question=f"Delete the schedule “{schedule.name}”?",
        effects=(
            "It starts no more runs. The runs that it has started remain with their results.",
        ),
        button="Delete schedule",
        back=reverse("schedules"),
    )


@for_member
@confirm_first(_ask_deletion)
def delete(request: HttpRequest, member: Member, schedule_id: UUID) -> HttpResponse:
    name = load_schedule(member, schedule_id).name
    delete_schedule(member=member, schedule_id=schedule_id)
    messages.success(request, f"The schedule “{name}” was deleted.")
    return redirect("schedules")


@for_member
def edit_schedule(request: HttpRequest, member: Member, schedule_id: UUID) -> HttpResponse:
    """Show a schedule in the form that created it."""
    schedule = load_schedule(member, schedule_id)
    member.require(Role.MEMBER, to="change a schedule")
    if request.method != "POST":
        form = ScheduleForm(member, initial=build_initial_schedule(schedule))
        return render_run_form(request, form, schedule=schedule)
    form = ScheduleForm(member, request.POST)
    changed = form.create(lambda: _change(member, schedule_id, form), default="name")
    if changed is None:
        return render_run_form(request, form, schedule=schedule)
    messages.success(request, f"The schedule “{changed.name}” was changed.")
    return redirect("schedules")


def _change(member: Member, schedule_id: UUID, form: ScheduleForm) -> Schedule:
    """Change a schedule if a run of it could be started today."""
    build_run_request(form, member)
    return change_schedule(member=member, schedule_id=schedule_id, new=form.build_schedule())
