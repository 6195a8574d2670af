"""Idle checks on the form of a run: the page loads them again until a worker has the results."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.dispatch.idle_checks import MOST_HOSTS, HostIdleness, load_idle_checks
from orchestrator.fleet.selectors import load_own_hosts
from orchestrator.web.access import for_member


@for_member
def show_idle_checks(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the idle checks of some hosts (`?host=` for each). Only the form requests new ones."""
    names = request.GET.getlist("host")[:MOST_HOSTS]
    checks = load_idle_checks(list(load_own_hosts(member).filter(name__in=names)))
    return render(request, "runs/_idle_checks.html", build_idle_context(checks))


def build_idle_context(checks: list[HostIdleness]) -> dict[str, Any]:
    """Return the context of `runs/_idle_checks.html`."""
    query = urlencode([("host", each.host.name) for each in checks])
    return {
        "idle_checks": checks,
        "idle_checks_running": [each.host.name for each in checks if each.is_running],
        "idle_checks_url": f"{reverse('run-idle-checks')}?{query}",
    }
