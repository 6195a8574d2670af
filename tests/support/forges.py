"""Process pull requests in tests without a worker."""

from datetime import timedelta

from django.db.models import F

from orchestrator.forges.models import PullRequest
from orchestrator.forges.pr_sync import due_pulls, follow


def follow_pulls(later: timedelta = timedelta()) -> int:
    """Process the pull requests that are due after `later`; return their number."""
    waiting = PullRequest.objects.exclude(next_at=None)
    waiting.update(next_at=F("next_at") - later)
    return sum(map(follow, due_pulls()))
