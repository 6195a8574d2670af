"""Access without an account: public projects, shared links, badges and embedded charts."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import parse_etags
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_exempt

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.selectors import load_benchmark, load_project, load_projects
from orchestrator.benchmarks.sharing import (
    build_public_address,
    build_shared_address,
    create_share_link,
    load_share_link,
    load_share_links,
    revoke_share_link,
    set_public,
)
from orchestrator.core.errors import NotFoundError
from orchestrator.core.ids import hash_value
from orchestrator.histories.badges import build_badge_texts, build_chart_text, load_badge_series
from orchestrator.histories.histories import (
    Part,
    load_history_choices,
    load_series,
    load_series_history,
)
from orchestrator.reports.shared_pages import resolve_shared_page
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.history_drawing import draw_history
from orchestrator.web.middleware import POLICY
from orchestrator.web.sharing.badges import (
    Badge,
    build_value_badge,
    build_verdict_badge,
)
from orchestrator.web.sharing.forms import PublicForm, ShareForm

POINTS_EMBEDDED = 60
_NARROWS = ("case", "host", "metric", "branch")


@for_member
def sharing(request: HttpRequest, member: Member) -> HttpResponse:
    context = {
        "projects": [(each, build_public_address(each)) for each in load_projects(member)],
        "links": load_share_links(member),
    }
    return render(request, "sharing/list.html", context)


@for_member
def public(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Show what becomes visible, and make a project public or private again."""
    project = load_project(member, slug)
    closes = request.method == "POST" and "close" in request.POST
    form = PublicForm(member, request.POST if request.method == "POST" and not closes else None)
    if closes or form.is_valid():
        set_public(member=member, project=project, public=not closes)
        visibility = "is now visible only to members of the team" if closes else "is now public"
        messages.success(request, f"{project.name} {visibility}.")
        return redirect("project-public", slug)
    if request.method == "POST":
        member.require(Role.MAINTAINER, to="change the visibility of a project")
    context = {"project": project, "form": form, "address": build_public_address(project)}
    return render(request, "sharing/public.html", context, status=form.status)


@never_cache
@for_member
def new_link(request: HttpRequest, member: Member) -> HttpResponse:
    """Create a shared link. It is only in the response to the request that created it."""
    member.require(Role.MEMBER, to="share a page")
    posted = request.POST if request.method == "POST" else None
    address = (posted or request.GET).get("page", "")
    form = ShareForm(member, posted, initial={"page": address})
    shared = resolve_shared_page(member, address)
    context: dict[str, Any] = {"form": form, "shared": shared, "address": address}
    made = form.create(
        lambda: create_share_link(member=member, shared=shared, days=form.cleaned_data["days"]),
        default="days",
    )
    if made is not None:
        context["made"] = made.link
        context["secret"] = build_shared_address(made)
    return render(request, "sharing/new.html", context, status=form.status)


def _ask_revocation(request: HttpRequest, member: Member, link_id: UUID) -> ConfirmationPage:
    link = load_share_link(member, link_id)
    return ConfirmationPage(
        question=f"Revoke the link to “{link.title}”?",
        effects=("Nobody can open the page with it any more. This cannot be undone.",),
        button="Revoke link",
        back=reverse("sharing"),
    )


@for_member
@confirm_first(_ask_revocation)
def revoke(request: HttpRequest, member: Member, link_id: UUID) -> HttpResponse:
    revoke_share_link(member=member, link_id=link_id)
    messages.success(request, "The link was revoked.")
    return redirect("sharing")


@open_to_visitors
@for_member
def badge_value(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    """Return the badge of the latest value of a metric."""
    benchmark = load_benchmark(member, slug, project)
    series = load_badge_series(member, benchmark, request.GET)
    return _build_svg_response(
        request, build_value_badge(series, request.GET.get("branch", ""), _label(request))
    )


@open_to_visitors
@for_member
def badge_verdict(request: HttpRequest, member: Member, project: str, slug: str) -> HttpResponse:
    """Return the badge of the verdict of the latest comparison on a branch."""
    benchmark = load_benchmark(member, slug, project)
    branch = request.GET.get("branch", "")
    return _build_svg_response(
        request, build_verdict_badge(member, benchmark, branch, _label(request))
    )


@xframe_options_exempt
@open_to_visitors
@for_member
def embed(request: HttpRequest, member: Member, series_id: int) -> HttpResponse:
    """Return the latest points of one series, for a frame of another page: no script, no cookie."""
    series = load_series(member, series_id)
    history = load_series_history(
        series, request.GET.get("branch", ""), Part(limit=POINTS_EMBEDDED, every=False)
    )
    drawing = draw_history(history)
    response = render(request, "sharing/embed.html", {"history": history, "drawing": drawing})
    ancestors = " ".join(settings.EMBED_ANCESTORS)
    response.headers["Content-Security-Policy"] = POLICY.replace(
        "frame-ancestors 'none'", f"frame-ancestors {ancestors}"
    )
    response.headers["Cache-Control"] = "public, max-age=60"
    return response


@for_member
def badges(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Show the code to copy into a README or a page, for the chosen benchmark and series."""
    project = load_project(member, slug)
    benchmarks = list(project.benchmarks.order_by("slug"))
    wanted = request.GET.get("benchmark", "")
    benchmark = next((each for each in benchmarks if each.slug == wanted), None)
    benchmark = benchmark or next(iter(benchmarks), None)
    context = {"project": project, "benchmarks": benchmarks, "benchmark": benchmark}
    if benchmark is not None:
        choices = load_history_choices(member, benchmark)
        filters = {name: request.GET[name] for name in _NARROWS if request.GET.get(name)}
        context |= {"choices": choices, "filters": filters, "branches": _list_branches(project)}
        try:
            series = load_badge_series(member, benchmark, filters)
        except NotFoundError as error:
            context["nothing"] = str(error)
        else:
            context |= {
                "badges": build_badge_texts(benchmark, filters),
                "chart": build_chart_text(series, filters),
            }
    return render(request, "sharing/badges.html", context)


def _list_branches(project: Project) -> list[str]:
    names = [project.default_branch, *(name for name, _ in project.branches)]
    return list(dict.fromkeys(names))[:30]


def _label(request: HttpRequest) -> str:
    return request.GET.get("label", "").strip()[:60]


def _build_svg_response(request: HttpRequest, badge: Badge) -> HttpResponse:
    tag = f'"{hash_value([badge.label, badge.text, badge.colour, badge.title])[:32]}"'
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        response: HttpResponse = HttpResponseNotModified()
    else:
        text = render_to_string("sharing/badge.svg", {"badge": badge})
        response = HttpResponse(text, content_type="image/svg+xml; charset=utf-8")
    response.headers["ETag"] = tag
    response.headers["Cache-Control"] = "public, max-age=60"
    return response
