"""Following pull requests, where no worker runs."""

from datetime import timedelta

from django.db.models import F

from orchestrator.forges.models import PullRequest
from orchestrator.forges.pr_sync import due_pulls, follow


def follow_pulls(later: timedelta = timedelta()) -> int:
    """Follows those that are due so much later; how many there were."""
    waiting = PullRequest.objects.exclude(next_at=None)
    waiting.update(next_at=F("next_at") - later)
    return sum(map(follow, due_pulls()))
