"""Schedules: runs that start by themselves."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.runs.schedules import delete_schedule, set_schedule_enabled
from orchestrator.runs.selectors import schedules_of
from orchestrator.web.access import for_member


@for_member
def schedules(request: HttpRequest, member: Member) -> HttpResponse:
    """What starts by itself; new ones are made with the form of a run."""
    return render(request, "schedules.html", {"schedules": schedules_of(member)})


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
