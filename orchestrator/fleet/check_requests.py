"""Requests for the checks of hosts: a web request asks, a worker claims and carries them out."""

import uuid
from datetime import timedelta

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from orchestrator.core.heartbeat import Claim
from orchestrator.database.row_claims import claim_of_row
from orchestrator.fleet.models import CheckRequest, Host

#: A worker that has not renewed its claim for this long is taken for dead.
CLAIM_S = 30.0


def request_check(host: Host) -> None:
    """Asks for the checks that are left; once, however often it is asked.

    One that comes while a worker carries them out outlives that worker: see `end_request`.
    """
    CheckRequest.objects.update_or_create(host=host, defaults={"requested_at": Now()})


def due_requests() -> list[uuid.UUID]:
    """The hosts whose checks no living worker carries out."""
    return list(_free().order_by("requested_at").values_list("host_id", flat=True)[:100])


def take_request(host_id: uuid.UUID) -> CheckRequest | None:
    """The request, claimed by the caller; None if there is none, or somebody else has it."""
    mine = _free().filter(host=host_id)
    until = Now() + timedelta(seconds=CLAIM_S)
    if not mine.update(claim=uuid.uuid4(), claimed_until=until, tries=F("tries") + 1):
        return None
    return CheckRequest.objects.get(host=host_id)


def claim_of(request: CheckRequest, *, since: float) -> Claim:
    """For a heartbeat; `since`: monotonic seconds, before the request was taken."""
    held = CheckRequest.objects.filter(pk=request.pk, claim=request.claim)
    return claim_of_row(held, until="claimed_until", lasts_s=CLAIM_S, since=since)


def note_progress(request: CheckRequest) -> None:
    """A step was tried to its end: deaths of workers count anew."""
    CheckRequest.objects.filter(pk=request.pk, claim=request.claim).update(tries=1)


def end_request(request: CheckRequest) -> None:
    """Removes the request, or frees it where somebody has asked again since it was taken."""
    mine = CheckRequest.objects.filter(pk=request.pk, claim=request.claim)
    deleted, _ = mine.filter(requested_at=request.requested_at).delete()
    if not deleted:
        mine.update(claim=None, claimed_until=None, tries=0)


def _free() -> QuerySet[CheckRequest]:
    return CheckRequest.objects.filter(Q(claim=None) | Q(claimed_until__lt=Now()))
