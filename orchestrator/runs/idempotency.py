"""Idempotency keys: repeated requests with the same key of a team create only one object."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken
from orchestrator.core.errors import ConflictError
from orchestrator.core.ids import hash_value
from orchestrator.runs.models import IdempotencyKey

#: A request may be repeated with its key for this long.
KEPT = timedelta(days=7)
PRUNED_AT_ONCE = 1_000


def answer_once(
    *,
    member: Member,
    token: ApiToken,
    key: str,
    request: Sequence[object],
    make: Callable[[], dict[str, Any]],
) -> tuple[dict[str, Any], bool]:
    """Return the result of `make` for this key, new or stored, and whether it is new.

    The key is stored in the transaction of `make`: a simultaneous request waits for it, and a
    failed one stores nothing. ConflictError if the key came with another request.
    """
    digest = hash_value(list(request))
    with transaction.atomic():
        taken = _claim_key(member, token, key, digest)
        if taken is not None:
            answer = make()
            IdempotencyKey.objects.filter(pk=taken.pk).update(answer=answer)
            return answer, True
    record = IdempotencyKey.objects.get(team=member.team, key=key)
    check_same(record, digest)
    # A request for a run has no answer, but a different digest.
    return record.answer or {}, False


def prune_keys() -> None:
    """Remove some expired keys, oldest first."""
    first = IdempotencyKey.objects.order_by("pk").values("pk")[:PRUNED_AT_ONCE]
    IdempotencyKey.objects.filter(pk__in=first, created_at__lt=Now() - KEPT).delete()


def check_same(record: IdempotencyKey, digest: str) -> None:
    if record.request_digest != digest:
        raise ConflictError(
            f"the idempotency key {record.key!r} was already used for another "
            "request; use a new key for a new request"
        )


def _claim_key(member: Member, token: ApiToken, key: str, digest: str) -> IdempotencyKey | None:
    try:
        with transaction.atomic():
            return IdempotencyKey.objects.create(
                team=member.team, token=token, key=key, request_digest=digest
            )
    except IntegrityError:
        return None
