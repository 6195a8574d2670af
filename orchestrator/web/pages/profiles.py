"""Hardware profiles: the kinds of machines of a team."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from orchestrator.accounts.members import Member
from orchestrator.fleet.selectors import profiles_of
from orchestrator.fleet.services import save_profile
from orchestrator.web.access import for_member
from orchestrator.web.forms import FORM_ERRORS, ProfileForm

_GIB = 1024**3


@for_member
def profiles(request: HttpRequest, member: Member) -> HttpResponse:
    form = ProfileForm(member, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            save_profile(member=member, **_facts(form.cleaned_data))
        except FORM_ERRORS as error:
            form.show_error(error)
        else:
            return redirect("profiles")
    context = {"form": form, "profiles": profiles_of(member)}
    return render(request, "hosts/profiles.html", context, status=form.status)


def _facts(data: dict[str, Any]) -> dict[str, Any]:
    gib = data["memory_gib"]
    return {
        "slug": data["slug"],
        "name": data["name"],
        "cpu_model": data["cpu_model"],
        "cores": data["cores"],
        "threads": data["threads"],
        "memory_bytes": None if gib is None else int(gib * _GIB),
        "os": data["os"],
        "price_per_hour": data["price_per_hour"],
    }
