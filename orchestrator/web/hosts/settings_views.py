"""The settings of one host: its use, its golden runs, and its state."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.calibration.golden import reset_references
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.fleet.host_settings import (
    put_in_maintenance,
    release_host,
    retire_host,
    set_host_settings,
)
from orchestrator.fleet.reservations import end_reservation, reserve_host
from orchestrator.fleet.selectors import load_host
from orchestrator.runs.calibration import start_calibration
from orchestrator.runs.golden import remove_golden, set_golden
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.hosts.forms import (
    CalibrationForm,
    GoldenForm,
    HostSettingsForm,
    ReservationForm,
)
from orchestrator.web.hosts.views import host_page


@for_member
@require_POST
def settings(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    host = load_host(member, host_id)
    form = HostSettingsForm(member, request.POST)
    if form.submit(
        lambda: set_host_settings(member=member, host_id=host.pk, **form.build_arguments())
    ):
        return redirect("host", host_id)
    return host_page(request, member, host, care=form)


@for_member
@require_POST
def golden(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    host = load_host(member, host_id)
    form = GoldenForm(member, request.POST)
    if form.submit(
        lambda: set_golden(member=member, host_id=host.pk, new=form.build_golden()),
        default="commit",
    ):
        return redirect("host", host_id)
    return host_page(request, member, host, golden=form)


def _ask_golden_removal(request: HttpRequest, member: Member, host_id: UUID) -> ConfirmationPage:
    host = load_host(member, host_id)
    return ConfirmationPage(
        question=f"Remove the golden run of {host.name}?",
        effects=("Drift of the host is no longer detected. The results of its runs remain.",),
        button="Remove golden run",
        back=reverse("host", args=[host_id]),
    )


@for_member
@confirm_first(_ask_golden_removal)
def golden_remove(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    remove_golden(member=member, host_id=host_id)
    return redirect("host", host_id)


def _ask_golden_reset(request: HttpRequest, member: Member, host_id: UUID) -> ConfirmationPage:
    host = load_host(member, host_id)
    return ConfirmationPage(
        question=f"Reset the reference of {host.name}?",
        effects=(
            "Earlier golden runs are no longer compared with new ones. Do this when the host "
            "became faster or slower for a known and permanent reason. It cannot be undone.",
        ),
        button="Reset reference",
        back=reverse("host", args=[host_id]),
    )


@for_member
@confirm_first(_ask_golden_reset)
def golden_reset(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    reset_references(member=member, host_id=host_id)
    return redirect("host", host_id)


@for_member
@require_POST
def calibrate(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    host = load_host(member, host_id)
    form = CalibrationForm(member, request.POST)
    run = form.create(
        lambda: start_calibration(member=member, host_id=host.pk, new=form.build_calibration()),
        default="commit",
    )
    if run is None:
        return host_page(request, member, host, calibration=form)
    wake_engine()
    return redirect("run", run.pk)


@for_member
@require_POST
def maintenance(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    reason = request.POST.get("reason", "")
    put_in_maintenance(member=member, host_id=host_id, reason=reason)
    return redirect("host", host_id)


@for_member
@require_POST
def reserve(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    host = load_host(member, host_id)
    form = ReservationForm(member, request.POST)
    if form.submit(lambda: reserve_host(member=member, host_id=host.pk, **form.cleaned_data)):
        return redirect("host", host_id)
    return host_page(request, member, host, reservation=form)


@for_member
@require_POST
def reservation_end(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    end_reservation(member=member, host_id=host_id)
    wake_engine()
    return redirect("host", host_id)


@for_member
@require_POST
def release(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    release_host(member=member, host_id=host_id)
    return redirect("host", host_id)


def _ask_retirement(request: HttpRequest, member: Member, host_id: UUID) -> ConfirmationPage:
    host = load_host(member, host_id)
    return ConfirmationPage(
        question=f"Retire {host.name}?",
        effects=("No more jobs run on it, permanently. Its results remain.",),
        button="Retire host",
        back=reverse("host", args=[host_id]),
    )


@for_member
@confirm_first(_ask_retirement)
def retire(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    retire_host(member=member, host_id=host_id)
    return redirect("host", host_id)
