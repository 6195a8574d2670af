"""What the team may use, and how much of it is used."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.core.units import format_bytes, format_duration
from orchestrator.retention.quota_use import use_of
from orchestrator.web.access import for_member


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """`used` and `limit` in words, `limit` empty where there is none; `part` of it in per cent."""

    title: str
    used: str
    limit: str
    part: int
    what_to_do: str


@for_member
def quotas(request: HttpRequest, member: Member) -> HttpResponse:
    used = use_of(member.team)
    limits = used.limits
    uses = [
        _use("Hosts", used.hosts, limits.hosts, str, "Retire hosts that are no longer needed."),
        _use(
            "Machine time in the queue",
            used.queued_s,
            limits.queued_s,
            format_duration,
            "Cancel runs, or wait for them.",
        ),
        _use(
            "Raw output and imports",
            used.storage_bytes,
            limits.storage_bytes,
            format_bytes,
            "Shorten how long projects keep raw files, distributions and single trials, or remove "
            "imported figures.",
        ),
        _use(
            "Mirrors of repositories",
            used.mirrors_bytes,
            limits.mirrors_bytes,
            format_bytes,
            "Remove large files from the history of repositories.",
        ),
    ]
    return render(request, "sharing/quotas.html", {"uses": uses, "limits": limits})


def _use(
    title: str, used: float, limit: int | None, shown: Callable[[Any], str], what_to_do: str
) -> Use:
    part = 0 if limit is None else 100 if not limit else min(100, round(100 * used / limit))
    return Use(
        title=title,
        used=shown(used),
        limit="" if limit is None else shown(limit),
        part=part,
        what_to_do=what_to_do,
    )
