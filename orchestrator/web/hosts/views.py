"""Hosts and hardware profiles: the lists, one host, and a new SSH host."""

from typing import cast
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.calibration.golden import load_golden_statuses
from orchestrator.core.clock import utc_now
from orchestrator.dispatch.remediation import build_host_setup
from orchestrator.fleet.host_settings import may_become
from orchestrator.fleet.models import UNUSABLE, Credential, Host, HostState, HostTransport
from orchestrator.fleet.open_hours import HoursNow
from orchestrator.fleet.reservations import describe_reservation
from orchestrator.fleet.selectors import (
    find_latest_snapshot,
    load_contradictions,
    load_credentials,
    load_host,
    load_host_changes,
    load_profile,
    load_profiles,
)
from orchestrator.fleet.services import (
    NewHost,
    add_credential,
    delete_profile,
    enter_host,
    list_profile_dependents,
    remove_host,
    save_profile,
)
from orchestrator.fleet.start_commands import format_command
from orchestrator.measurements.validity_issues import RunValidity, load_run_validity
from orchestrator.runs.models import GoldenCheck
from orchestrator.runs.selectors import load_jobs
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.forms import FORM_ERRORS
from orchestrator.web.hosts.cores import build_core_map
from orchestrator.web.hosts.facts import (
    build_contradiction_pair,
    build_fact_change,
    describe_clock_offset,
    describe_unrestored_tuning,
    group_facts,
)
from orchestrator.web.hosts.forms import (
    CalibrationForm,
    GoldenForm,
    HostForm,
    HostSettingsForm,
    ProfileForm,
    ReservationForm,
    build_initial_calibration,
    build_initial_golden,
    build_initial_settings,
)
from orchestrator.web.hosts.noise import load_noise_floor
from orchestrator.web.hosts.presenters import count_fleet, hash_fleet, load_fleet_rows
from orchestrator.web.live_parts import render_live_page

LATEST_JOBS = 20
#: The states that the page has a button for.
HELD_OR_READY = (HostState.READY, HostState.MAINTENANCE, HostState.RETIRED)


@for_member
def hosts(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the page; htmx gets only the list, and 304 if nothing has changed."""
    rows = load_fleet_rows(member)
    context = {"rows": rows, "counts": count_fleet(rows)}
    return render_live_page(request, "hosts/list.html", context, part="fleet", tag=hash_fleet(rows))


@for_member
def host(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    return host_page(request, member, load_host(member, host_id))


def host_page(
    request: HttpRequest,
    member: Member,
    record: Host,
    *,
    care: HostSettingsForm | None = None,
    golden: GoldenForm | None = None,
    calibration: CalibrationForm | None = None,
    reservation: ReservationForm | None = None,
) -> HttpResponse:
    """Show the page of a host.

    Forms that are given are shown as they were sent, with their errors.
    """
    snapshot = find_latest_snapshot(record)
    status = load_golden_statuses(member).get(record.pk)
    check = status.check if status else None
    context = {
        "host": record,
        "hours": _compute_hours(record),
        "golden": status,
        "golden_validity": _load_golden_validity(check),
        "snapshot": snapshot,
        "groups": group_facts(snapshot.facts) if snapshot else [],
        "core_map": build_core_map(snapshot.facts, record.tuning) if snapshot else None,
        "clock_off": describe_clock_offset(snapshot.facts, snapshot.taken_at) if snapshot else "",
        "tunable": snapshot.facts.get("tuning_available") if snapshot else None,
        "start_command": format_command(record.start_command),
        "unrestored": describe_unrestored_tuning(snapshot.facts) if snapshot else "",
        "contradictions": [build_contradiction_pair(each) for each in load_contradictions(record)],
        "changes": [
            build_fact_change(each.at, each.changed) for each in load_host_changes(record).reverse()
        ],
        "jobs": load_jobs(record)[:LATEST_JOBS],
        "setup_script": _build_setup(record),
        "care": care or HostSettingsForm(member, initial=build_initial_settings(record)),
        "golden_form": golden or GoldenForm(member, initial=build_initial_golden(check)),
        "noise": load_noise_floor(record, request.GET.get("series", "")),
        "calibration_form": calibration
        or CalibrationForm(member, initial=build_initial_calibration(check)),
        "reserved": describe_reservation(record),
        "reservation_form": reservation or ReservationForm(member),
        "may_be_reserved": record.state not in UNUSABLE,
        "may": {state.name.lower(): may_become(record, state) for state in HELD_OR_READY},
    }
    sent = care or golden or calibration or reservation
    return render(request, "hosts/detail.html", context, status=sent.status if sent else 200)


def _build_setup(record: Host) -> str:
    return "" if record.transport == HostTransport.EXTERNAL else build_host_setup(record)


@for_member
def new_host(request: HttpRequest, member: Member) -> HttpResponse:
    member.require(Role.MAINTAINER, to="add a host")
    form = HostForm(member, request.POST if request.method == "POST" else None)
    made = None
    if form.is_valid():
        try:
            made = _create_credential(member, form)
            record = enter_host(member=member, new=_build_new_host(form, made))
        except FORM_ERRORS as error:
            form = _build_form_with_stored_key(form, made)
            form.show_error(error)
        else:
            return redirect("host-checks", record.pk)
    context = {"form": form, "made": made, "credentials": load_credentials(member)}
    return render(request, "hosts/new.html", context, status=form.status)


def _ask_removal(request: HttpRequest, member: Member, host_id: UUID) -> ConfirmationPage:
    host = load_host(member, host_id)
    return ConfirmationPage(
        question=f"Remove {host.name}?",
        effects=("It has not measured anything. Its settings and its pinned key are deleted.",),
        button="Remove host",
        back=reverse("host", args=[host_id]),
    )


@for_member
@confirm_first(_ask_removal)
def remove(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    name = load_host(member, host_id).name
    remove_host(member=member, host_id=host_id)
    messages.success(request, f"{name} was removed.")
    return redirect("hosts")


@for_member
def profiles(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the profiles. `?profile=slug` fills the form with that profile, to change it."""
    slug = request.GET.get("profile")
    chosen = load_profile(member, slug) if slug else None
    form = ProfileForm(member, request.POST if request.method == "POST" else None, chosen=chosen)
    saved = form.create(lambda: save_profile(member=member, **form.build_facts()))
    if saved is not None:
        messages.success(request, f"The profile “{saved}” was saved.")
        return redirect("profiles")
    context = {"form": form, "profiles": load_profiles(member), "chosen": chosen}
    return render(request, "hosts/profiles.html", context, status=form.status)


def _ask_profile_deletion(request: HttpRequest, member: Member, slug: str) -> ConfirmationPage:
    profile = load_profile(member, slug)
    dependents = list_profile_dependents(profile)
    return ConfirmationPage(
        question=f"Delete the hardware profile “{profile}”?",
        effects=("Only a profile without hosts can be deleted. This cannot be undone.",),
        button="Delete profile",
        back=reverse("profiles"),
        dependents=dependents,
    )


@for_member
@confirm_first(_ask_profile_deletion)
def delete_hardware_profile(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    name = load_profile(member, slug).name
    delete_profile(member=member, slug=slug)
    messages.success(request, f"The profile “{name}” was deleted.")
    return redirect("profiles")


def _create_credential(member: Member, form: HostForm) -> Credential | None:
    """Return the key pair that the form asks to create; None if a stored one was chosen."""
    data = form.cleaned_data
    if data["key_source"] == "stored":
        return None
    pasted = data["private_key"] if data["key_source"] == "paste" else None
    return add_credential(member=member, name=f"{data['name']} key", private_key=pasted)


def _build_new_host(form: HostForm, made: Credential | None) -> NewHost:
    data = form.cleaned_data
    return NewHost(
        name=data["name"],
        profile_slug=data["profile"],
        address=data["address"],
        port=data["port"],
        login=data["login"],
        credential_id=made.pk if made else UUID(data["credential"]),
        work_dir=data["work_dir"] or ".pitwall",
        python=data["python"] or "python3",
        run_as=data["run_as"],
        jump_hosts=data["jump_hosts"].splitlines(),
    )


def _build_form_with_stored_key(form: HostForm, made: Credential | None) -> HostForm:
    """Return the form again; a key that was created with it is now a stored one, and chosen."""
    if made is None:
        return form
    data = cast(QueryDict, form.data).copy()
    data.setlist("key_source", ["stored"])
    data.setlist("credential", [str(made.pk)])
    data.setlist("private_key", [""])
    form = HostForm(form.member, data)
    form.full_clean()
    return form


def _load_golden_validity(check: GoldenCheck | None) -> RunValidity | None:
    """Return the validity of the trials behind the latest golden outcome."""
    if check is None or check.last_run_id is None:
        return None
    return load_run_validity([check.last_run_id])[check.last_run_id]


def _compute_hours(record: Host) -> HoursNow:
    return record.hours.compute_state(utc_now(), record.timezone)
