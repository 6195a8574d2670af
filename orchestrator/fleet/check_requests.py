"""Requests for the checks of hosts: a web process adds them, a worker claims and executes them."""

import uuid
from datetime import timedelta

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from orchestrator.core.heartbeat import Claim
from orchestrator.database.row_claims import build_row_claim
from orchestrator.fleet.models import CheckRequest, Host

#: A worker is considered dead if its claim was not renewed for this long.
CLAIM_S = 30.0


def request_check(host: Host) -> None:
    """Request the remaining checks of a host; a second request changes only the time.

    A request that arrives while a worker executes the checks is kept: see `end_request`.
    """
    CheckRequest.objects.update_or_create(
        host=host, defaults={"requested_at": Now(), "idle_only": False}
    )


def request_idle_check(host: Host) -> None:
    """Request a new idle check of a host, unless checks of it are requested already."""
    CheckRequest.objects.get_or_create(host=host, defaults={"idle_only": True})


def load_due_host_ids() -> list[uuid.UUID]:
    """Return the hosts with a request that no living worker has claimed."""
    return list(_select_free().order_by("requested_at").values_list("host_id", flat=True)[:100])


def claim_request(host_id: uuid.UUID) -> CheckRequest | None:
    """Claim and return the request; None if there is none or another worker has it."""
    mine = _select_free().filter(host=host_id)
    until = Now() + timedelta(seconds=CLAIM_S)
    if not mine.update(claim=uuid.uuid4(), claimed_until=until, tries=F("tries") + 1):
        return None
    return CheckRequest.objects.get(host=host_id)


def build_request_claim(request: CheckRequest, *, since: float) -> Claim:
    """Return a claim for the heartbeat. `since`: monotonic seconds before the request was taken."""
    held = CheckRequest.objects.filter(pk=request.pk, claim=request.claim)
    return build_row_claim(held, until="claimed_until", lasts_s=CLAIM_S, since=since)


def record_progress(request: CheckRequest) -> None:
    """Reset the count of tries after a finished step: only deaths of workers count."""
    CheckRequest.objects.filter(pk=request.pk, claim=request.claim).update(tries=1)


def end_request(request: CheckRequest) -> None:
    """Remove the request, or free it if the checks were requested again since it was taken."""
    mine = CheckRequest.objects.filter(pk=request.pk, claim=request.claim)
    deleted, _ = mine.filter(requested_at=request.requested_at).delete()
    if not deleted:
        mine.update(claim=None, claimed_until=None, tries=0)


def _select_free() -> QuerySet[CheckRequest]:
    return CheckRequest.objects.filter(Q(claim=None) | Q(claimed_until__lt=Now()))
