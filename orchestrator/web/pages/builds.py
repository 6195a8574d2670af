"""The whole log of a build, growing while the build goes on."""

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags

from orchestrator.accounts.members import Member
from orchestrator.runs.job_details import build_for
from orchestrator.runs.models import Build
from orchestrator.runs.states import BuildState
from orchestrator.web.access import for_member


@for_member
def build_log(request: HttpRequest, member: Member, build_id: int) -> HttpResponse:
    """The page; for htmx the log alone, and 304 when it did not grow."""
    build = build_for(member, build_id)
    if request.headers.get("HX-Request"):
        response = _log_alone(request, build)
    else:
        response = render(request, "runs/build.html", _context(build))
    response.headers["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["HX-Request"])
    return response


def _log_alone(request: HttpRequest, build: Build) -> HttpResponse:
    tag = _tag(build)
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        response: HttpResponse = HttpResponseNotModified()
    else:
        response = render(request, "runs/build.html#log", _context(build))
    response.headers["ETag"] = tag
    return response


def _context(build: Build) -> dict[str, object]:
    going_on = build.state == BuildState.BUILDING
    return {"build": build, "going_on": going_on, "tag": _tag(build)}


def _tag(build: Build) -> str:
    return f'"{build.state}-{build.log_offset}"'
