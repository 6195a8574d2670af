"""Trials, and the interim analyses between their rounds."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from orchestrator.benchmarks.models import Case
from orchestrator.core.ids import new_id
from orchestrator.fleet.models import Host
from orchestrator.runs.models.choices import in_enum
from orchestrator.runs.models.jobs import Job
from orchestrator.runs.models.runs import Variant
from orchestrator.runs.states import TrialState, Validity


class Trial(models.Model):
    """One measured execution of one case for one variant. Planned with the run, filled in once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # A constraint below begins with each of these two, so they need no separate index.
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="trials", db_index=False)
    variant = models.ForeignKey(
        Variant, on_delete=models.CASCADE, related_name="trials", db_index=False
    )
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="trials")
    round = models.PositiveSmallIntegerField()
    position = models.PositiveIntegerField(help_text="Place in the job's order of execution.")
    expected_s = models.FloatField()
    host = models.ForeignKey(
        Host,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="trials",
        db_index=False,
        help_text="Where the server ran; null until the trial is stored.",
    )
    state = models.CharField(max_length=12, default=TrialState.PLANNED)
    validity = models.CharField(max_length=8, blank=True)
    reasons = models.JSONField(default=list)
    message = models.TextField(blank=True)
    attempt = models.PositiveSmallIntegerField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    provenance = models.JSONField(default=dict)

    class Meta:
        ordering = ["position"]
        # Thousands of rows are inserted at once, without a host: each index costs noticeable time.
        indexes = [
            models.Index(
                fields=["host"], condition=Q(host__isnull=False), name="trial_stored_by_host"
            ),
            models.Index(
                fields=["variant"],
                condition=Q(state="failed") | Q(validity__in=["suspect", "invalid"]),
                name="trial_doubtful_by_variant",
            ),
        ]
        constraints = [
            in_enum("state", TrialState, "trial_state_known"),
            models.UniqueConstraint(
                fields=["variant", "case", "job", "round"], name="trial_once_a_block"
            ),
            models.UniqueConstraint(fields=["job", "position"], name="trial_position_once"),
            models.CheckConstraint(
                condition=Q(validity__in=["", *[str(value) for value in Validity]]),
                name="trial_validity_known",
            ),
            models.CheckConstraint(
                condition=~Q(state="measured") | ~Q(validity=""),
                name="trial_measured_has_validity",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.case} round {self.round}"


class InterimAnalysis(models.Model):
    """An analysis of a case of a job between two rounds, with `blocks` clean blocks.

    An analysis is never changed. The newest one of a case is its status: decided, futile (stopped
    early, without a sign of a change) or open. `excluded`: blocks that do not count.
    `needed_blocks`: the estimated total for a decision, null if unknown; `needed_least` and
    `needed_most` are its range. `p_values` are those of
    its primary metrics against each contender.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="interim_analyses")
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="+")
    blocks = models.PositiveSmallIntegerField()
    excluded = models.PositiveSmallIntegerField()
    at = models.DateTimeField(auto_now_add=True)
    decided = models.BooleanField()
    futile = models.BooleanField()
    verdict = models.CharField(max_length=12)
    needed_blocks = models.PositiveSmallIntegerField(null=True, blank=True)
    needed_least = models.PositiveSmallIntegerField(null=True, blank=True)
    needed_most = models.PositiveSmallIntegerField(null=True, blank=True)
    p_values = ArrayField(models.FloatField())
    message = models.TextField()

    class Meta:
        ordering = ["job", "case", "blocks"]
        constraints = [
            models.UniqueConstraint(fields=["job", "case", "blocks"], name="interim_analysis_once"),
            models.CheckConstraint(
                condition=~Q(decided=True, futile=True), name="interim_analysis_decided_or_futile"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.case} after {self.blocks} blocks: {self.message}"
