"""Hardware profiles: the kinds of machines of a team."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from orchestrator.accounts.members import Member
from orchestrator.fleet.models import HardwareProfile
from orchestrator.fleet.selectors import profile_for, profiles_of
from orchestrator.fleet.services import save_profile
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS
from orchestrator.web.host_forms import ProfileForm

_GIB = 1024**3
#: Fields of the form that are fields of the profile.
_SAME = (
    "cpu_model", "cores", "threads", "base_clock_mhz", "boost_clock_mhz", "os", "price_per_hour",
)  # fmt: skip


@for_member
def profiles(request: HttpRequest, member: Member) -> HttpResponse:
    """`?profile=slug` fills the form with that profile, to be changed."""
    chosen = request.GET.get("profile")
    initial = _fields(profile_for(member, chosen)) if chosen else None
    data = request.POST if request.method == "POST" else None
    form = ProfileForm(member, data, initial=initial)
    if form.is_valid():
        try:
            save_profile(member=member, **_facts(form.cleaned_data))
        except FORM_ERRORS as error:
            form.show_error(error)
        else:
            return redirect("profiles")
    context = {"form": form, "profiles": profiles_of(member), "chosen": chosen}
    return render(request, "hosts/profiles.html", context, status=form.status)


def _facts(data: dict[str, Any]) -> dict[str, Any]:
    gib = data["memory_gib"]
    same = {name: data[name] for name in ("slug", "name", *_SAME)}
    return {**same, "memory_bytes": None if gib is None else int(gib * _GIB)}


def _fields(profile: HardwareProfile) -> dict[str, Any]:
    same = {name: getattr(profile, name) for name in ("slug", "name", *_SAME)}
    bytes_ = profile.memory_bytes
    return {**same, "memory_gib": None if bytes_ is None else round(bytes_ / _GIB, 2)}
