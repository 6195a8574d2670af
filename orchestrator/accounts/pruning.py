"""Removes sessions and API tokens that ended, some at a time; the tasks call it."""

from datetime import timedelta

from django.contrib.sessions.models import Session
from django.db.models import Q
from django.db.models.functions import Now

from orchestrator.accounts.models import ApiToken

AT_ONCE = 1_000
#: So long a token that was revoked or has expired can still be looked up in the database.
TOKENS_KEPT = timedelta(days=90)


def prune_sessions() -> None:
    """Visitors who begin to sign in elsewhere get a session as well, so that there may be many."""
    ended = Session.objects.filter(expire_date__lt=Now()).order_by("expire_date")
    Session.objects.filter(pk__in=ended.values("pk")[:AT_ONCE]).delete()


def prune_tokens() -> None:
    """The audit log keeps their names."""
    limit = Now() - TOKENS_KEPT
    ended = ApiToken.objects.filter(Q(revoked_at__lt=limit) | Q(expires_at__lt=limit))
    ApiToken.objects.filter(pk__in=ended.values("pk")[:AT_ONCE]).delete()
