"""Every reason not to believe a trial, with its threshold."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.web.access import for_member, open_to_visitors


@open_to_visitors
@for_member
def validity(request: HttpRequest, member: Member) -> HttpResponse:
    return render(request, "validity.html", {"rules": THRESHOLDS.values()})
