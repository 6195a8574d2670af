"""What ended long ago is removed in batches, and nothing that is still of use."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db.models import F

from orchestrator.accounts import pruning
from orchestrator.accounts.models import ApiToken
from orchestrator.accounts.services import create_token
from orchestrator.core.clock import utc_now
from orchestrator.dispatch import background_tasks
from orchestrator.dispatch.background_tasks import remove_ended
from orchestrator.runs import idempotency
from orchestrator.runs.models import IdempotencyKey
from tests.support.factories import Personas


def test_ended_sessions_keys_and_tokens_are_removed_in_batches(
    personas: Personas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "AT_ONCE", 3)
    monkeypatch.setattr(idempotency, "PRUNED_AT_ONCE", 3)
    now, alice = utc_now(), personas.alice
    for number in range(5):
        Session.objects.create(session_key=f"old{number}", expire_date=now - timedelta(seconds=1))
        IdempotencyKey.objects.create(team=alice.team, key=f"old{number}", request_digest="0")
        token = create_token(member=alice, name=f"old{number}").token
        ended = {"revoked_at" if number % 2 else "expires_at": now - timedelta(days=91)}
        ApiToken.objects.filter(pk=token.pk).update(**ended)
    IdempotencyKey.objects.update(created_at=F("created_at") - timedelta(days=8))
    Session.objects.create(session_key="new", expire_date=now + timedelta(days=1))
    IdempotencyKey.objects.create(team=alice.team, key="new", request_digest="0")
    ended = create_token(member=alice, name="new").token
    ApiToken.objects.filter(pk=ended.pk).update(revoked_at=now)
    seen = []
    for _ in range(3):
        remove_ended()
        seen.append((Session.objects.count(), IdempotencyKey.objects.count(), _tokens()))
    assert seen == [(3, 3, 3), (1, 1, 1), (1, 1, 1)]
    assert Session.objects.get().pk == "new"
    assert IdempotencyKey.objects.get().key == "new"
    assert ApiToken.objects.get().name == "new"


def test_an_error_in_one_kind_does_not_stop_the_others(
    personas: Personas, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    Session.objects.create(session_key="old", expire_date=utc_now() - timedelta(seconds=1))

    def prune_tokens() -> None:
        raise ValueError("in vain")

    monkeypatch.setattr(background_tasks, "prune_tokens", prune_tokens)
    IdempotencyKey.objects.create(team=personas.alice.team, key="old", request_digest="0")
    IdempotencyKey.objects.update(created_at=F("created_at") - timedelta(days=8))
    remove_ended()
    assert not Session.objects.exists()
    assert not IdempotencyKey.objects.exists()
    assert "prune_tokens failed" in caplog.text


def _tokens() -> int:
    return ApiToken.objects.count()
