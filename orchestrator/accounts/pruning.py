"""Removal of ended sessions and API tokens in batches, called by the tasks."""

from datetime import timedelta

from django.contrib.sessions.models import Session
from django.db.models import Q
from django.db.models.functions import Now

from orchestrator.accounts.models import ApiToken

AT_ONCE = 1_000
#: Revoked and expired tokens stay in the database for this time.
TOKENS_KEPT = timedelta(days=90)


def prune_sessions() -> None:
    """Remove expired sessions; starting a sign-in creates one too, so there may be many."""
    ended = Session.objects.filter(expire_date__lt=Now()).order_by("expire_date")
    Session.objects.filter(pk__in=ended.values("pk")[:AT_ONCE]).delete()


def prune_tokens() -> None:
    """Remove old tokens; the audit log keeps their names."""
    limit = Now() - TOKENS_KEPT
    ended = ApiToken.objects.filter(Q(revoked_at__lt=limit) | Q(expires_at__lt=limit))
    ApiToken.objects.filter(pk__in=ended.values("pk")[:AT_ONCE]).delete()
