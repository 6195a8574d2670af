"""One trial: everything that is known of it, and its raw files."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.results.selectors import artifact_content, trial_details
from orchestrator.results.surroundings import applied_limits, surroundings_of
from orchestrator.runs.selectors import run_for, trial_for
from orchestrator.web.access import for_member

#: Shown on their own, above the rest of the provenance.
_SHOWN_APART = frozenset({"argv", "server_argv", "tool", "commit", "host", "hosts", "limits"})


@for_member
def trial(request: HttpRequest, member: Member, trial_id: UUID) -> HttpResponse:
    found = trial_for(member, trial_id)
    rest = {key: value for key, value in found.provenance.items() if key not in _SHOWN_APART}
    context = {
        "trial": found,
        "run": run_for(member, found.job.run_id),
        "details": trial_details(found),
        "provenance": found.provenance,
        "rest": rest,
        "limits": applied_limits(found),
        "surroundings": surroundings_of(found),
        "snapshot": found.job.snapshot,
    }
    return render(request, "trials/detail.html", context)


@for_member
def artifact(request: HttpRequest, member: Member, trial_id: UUID, name: str) -> HttpResponse:
    content = artifact_content(member, trial_id, name)
    response = HttpResponse(content, content_type="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{trial_id}-{name}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
