"""Runs with their variants, and the keys of repeated requests."""

from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import ApiToken, Team, User
from orchestrator.benchmarks.models import Commit, Definition
from orchestrator.benchmarks.spec import MAX_BUILDS, MAX_ROUNDS
from orchestrator.core.ids import new_id
from orchestrator.runs.models.backfills import Backfill
from orchestrator.runs.models.choices import Priority, Trigger, Until, in_enum
from orchestrator.runs.models.schedules import Schedule
from orchestrator.runs.states import RunState


class Run(models.Model):
    """A request to measure one baseline and its contenders on one or more hosts.

    `cases` is the expression that selected the cases, `pairwise` whether their number was reduced.
    `rounds` is the maximum (`until` may end a case earlier). `places`: the number of first places
    that a run until `ranked` orders. `budget_s`: the machine seconds that
    all hosts together may spend; null: without limit. `builds`: how often each commit is built
    (`trial_order`). `wait_for_quiet`: trials wait for a time while other processes use a host.
    `waits_until`: the jobs that are still queued then fail (`wait_limits`).
    `repositories`: the commits of other repositories that it measures with, as objects with `name`,
    `project`, `ref` and `sha` (runs/pinned_repositories.py).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="runs")
    definition = models.ForeignKey(Definition, on_delete=models.PROTECT, related_name="runs")
    trigger = models.CharField(max_length=12, choices=Trigger.choices)
    requested_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    schedule = models.ForeignKey(
        Schedule, on_delete=models.SET_NULL, null=True, blank=True, related_name="runs"
    )
    backfill = models.ForeignKey(
        Backfill, on_delete=models.SET_NULL, null=True, blank=True, related_name="runs"
    )
    cases = models.TextField(blank=True)
    pairwise = models.BooleanField(default=False)
    rounds = models.PositiveIntegerField()
    builds = models.PositiveSmallIntegerField(default=1)
    until = models.CharField(max_length=8, choices=Until.choices, default=Until.ROUNDS)
    places = models.PositiveSmallIntegerField(null=True, blank=True)
    budget_s = models.FloatField(null=True, blank=True)
    wait_for_quiet = models.BooleanField(default=True)
    waits_until = models.DateTimeField()
    repositories = models.JSONField(default=list, blank=True)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    seed = models.BigIntegerField()
    state = models.CharField(max_length=16, default=RunState.QUEUED)
    message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-created_at"], name="run_by_team")]
        constraints = [
            in_enum("state", RunState, "run_state_known"),
            models.CheckConstraint(
                condition=Q(rounds__gte=1) & Q(rounds__lte=MAX_ROUNDS), name="run_rounds_in_range"
            ),
            models.CheckConstraint(
                condition=Q(builds__gte=1) & Q(builds__lte=MAX_BUILDS), name="run_builds_in_range"
            ),
            models.CheckConstraint(condition=Q(until__in=Until.values), name="run_until_known"),
            models.CheckConstraint(
                condition=Q(places=None) | Q(until=Until.RANKED, places__gte=1),
                name="run_places_if_ranked",
            ),
            models.CheckConstraint(
                condition=Q(budget_s=None) | Q(budget_s__gt=0), name="run_budget_is_some_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.definition} {str(self.id)[:8]}"


class Variant(models.Model):
    """One commit of a run; position 0 is the baseline."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="variants")
    commit = models.ForeignKey(Commit, on_delete=models.PROTECT, related_name="variants")
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "commit"], name="variant_commit_once"),
            models.UniqueConstraint(fields=["run", "position"], name="variant_position_once"),
        ]

    def __str__(self) -> str:
        return str(self.commit)


class IdempotencyKey(models.Model):
    """A key that a client sent, and what its request created: a run, or a stored answer."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="idempotency_keys")
    token = models.ForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, related_name="+")
    key = models.CharField(max_length=200)
    request_digest = models.CharField(max_length=64)
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, null=True, related_name="idempotency_keys"
    )
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return self.key
