"""Schedules, which start runs without a user."""

from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import Team, User
from orchestrator.benchmarks.models import Benchmark
from orchestrator.core.ids import new_id
from orchestrator.fleet.models import Host
from orchestrator.runs.models.choices import Priority, Until


class Schedule(models.Model):
    """Starts runs automatically: at the times of `cron`, for each new commit of `branch`, or for
    each new tag that matches the pattern `tags`.

    The new commit is the contender; `baseline_ref` defaults to its parent. `seen_sha` is the newest
    commit that was checked, empty before the first check; `seen_tags` are the names of the tags
    then, null before. `placements` are as in a request, for several roles, or for any host of a
    profile or tag. `resolution`: the change (0.02: 2 %) that its runs must detect; their
    rounds are computed from it when they start. `wait_limit_s`: the limit of the wait of its runs.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="schedules")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="schedules")
    hosts = models.ManyToManyField(Host, related_name="schedules")
    name = models.CharField(max_length=100)
    cron = models.CharField(max_length=100, blank=True, help_text="Five fields, in UTC.")
    branch = models.CharField(max_length=200, blank=True)
    tags = models.CharField(max_length=200, blank=True)
    seen_tags = models.JSONField(null=True, blank=True)
    seen_sha = models.CharField(max_length=40, blank=True)
    baseline_ref = models.CharField(max_length=200, blank=True)
    contender_ref = models.CharField(max_length=200, blank=True)
    second_contender_ref = models.CharField(max_length=200, blank=True)
    placements = models.JSONField(default=list, blank=True)
    cases = models.TextField(blank=True, help_text="An expression that chooses cases.")
    pairwise = models.BooleanField(default=False)
    rounds = models.PositiveIntegerField(null=True, blank=True)
    builds = models.PositiveSmallIntegerField(null=True, blank=True)
    resolution = models.FloatField(null=True, blank=True)
    until = models.CharField(max_length=8, choices=Until.choices, default=Until.ROUNDS)
    budget_s = models.FloatField(null=True, blank=True)
    wait_limit_s = models.FloatField(null=True, blank=True)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    next_at = models.DateTimeField(db_index=True)
    last_at = models.DateTimeField(null=True, blank=True)
    last_message = models.TextField(blank=True)
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="Until then it waits for a fetch, or after a mistake."
    )
    failures = models.PositiveSmallIntegerField(default=0, db_default=0)
    fetch_requested_at = models.DateTimeField(
        null=True, blank=True, help_text="Since then it waits for a fetch."
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="schedule_name_once"),
            models.CheckConstraint(
                condition=(~Q(cron="") & Q(branch="", tags=""))
                | (Q(cron="", tags="") & ~Q(branch=""))
                | (Q(cron="", branch="") & ~Q(tags="")),
                name="schedule_starts_one_way",
            ),
            models.CheckConstraint(
                condition=Q(resolution=None) | Q(resolution__gt=0),
                name="schedule_resolution_is_a_change",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def follows(self) -> bool:
        """Return whether new commits start it, and not the time."""
        return bool(self.branch or self.tags)
