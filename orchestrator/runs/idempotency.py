"""Requests that are sent twice: the same key of the same team makes one thing only."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db import IntegrityError, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken
from orchestrator.core.errors import ConflictError
from orchestrator.core.ids import digest_of
from orchestrator.runs.models import IdempotencyKey


def answer_once(
    *,
    member: Member,
    token: ApiToken,
    key: str,
    request: Sequence[object],
    make: Callable[[], dict[str, Any]],
) -> tuple[dict[str, Any], bool]:
    """What `make` returned for this key, now or before, and whether it was now.

    The key is taken in one transaction with what is made: a second request at the same time waits
    for it, and a failed one leaves nothing. ConflictError where the key came with another request.
    """
    digest = digest_of(list(request))
    with transaction.atomic():
        taken = _take(member, token, key, digest)
        if taken is not None:
            answer = make()
            IdempotencyKey.objects.filter(pk=taken.pk).update(answer=answer)
            return answer, True
    found = IdempotencyKey.objects.get(team=member.team, key=key)
    check_same(found, digest)
    # Of a request for a run there is none; then the digest is another one.
    return found.answer or {}, False


def check_same(found: IdempotencyKey, digest: str) -> None:
    if found.request_digest != digest:
        raise ConflictError(
            f"the idempotency key {found.key!r} came with another request before; "
            "use a new key for a new request"
        )


def _take(member: Member, token: ApiToken, key: str, digest: str) -> IdempotencyKey | None:
    try:
        with transaction.atomic():
            return IdempotencyKey.objects.create(
                team=member.team, token=token, key=key, request_digest=digest
            )
    except IntegrityError:
        return None
