"""Backfills, which measure earlier commits."""

from django.db import models

from orchestrator.accounts.models import Team, User
from orchestrator.benchmarks.models import Benchmark
from orchestrator.core.ids import new_id


class Backfill(models.Model):
    """A request to measure earlier commits, with one run for each.

    `selection` describes the commits. `scope` is the digest of the cases and placements: backfills
    of the same scope measure a commit once. `skipped`: {"sha", "reason"} of each selected commit
    that has no run in this backfill.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="backfills")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="backfills")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    selection = models.TextField()
    scope = models.CharField(max_length=64)
    skipped = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-created_at"], name="backfill_by_team")]

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.selection}"
