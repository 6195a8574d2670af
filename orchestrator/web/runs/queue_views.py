"""The queue: all jobs that wait for their hosts."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.runs.queue_forecast import load_queue, load_queue_entries
from orchestrator.web.access import for_member

JOBS_A_PAGE = 100


@for_member
def show_queue(request: HttpRequest, member: Member) -> HttpResponse:
    page = Paginator(load_queue(member), JOBS_A_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "entries": load_queue_entries(member, page)}
    return render(request, "runs/queue.html", context)
