"""Measurements of trials.

Rows are only ever inserted; a trigger of the database refuses updates.
"""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from orchestrator.accounts.models import Team
from orchestrator.runs.models import Trial
from orchestrator.runs.states import Validity


class Metric(models.Model):
    """A metric's key as a number.

    Keys of the registry in `orchestrator.loadtools.metrics` belong to no team. Each custom metric
    belongs to one team, so that no team can see or use up another's. Older ones, which several
    teams shared, have no team.
    """

    id = models.AutoField(primary_key=True)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="+")
    key = models.CharField(max_length=60)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "key"], nulls_distinct=False, name="metric_once"
            )
        ]

    def __str__(self) -> str:
        return self.key


class HistogramKind(models.TextChoices):
    OK = "ok", "Answered well"
    OTHER = "other", "Answered otherwise"


class Histogram(models.Model):
    """The trial's whole latency distribution in HdrHistogram V2 encoding, in microseconds."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="histograms")
    kind = models.CharField(max_length=5, choices=HistogramKind.choices)
    encoded = models.BinaryField()
    count = models.PositiveBigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "kind"], name="histogram_once"),
            models.CheckConstraint(condition=Q(count__gte=1), name="histogram_not_empty"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} × {self.count}"


class LoadResult(models.Model):
    """One load of a trial that has several: a step, or a probe of a search.

    `readings`: metric key → value. `passed` is null for steps. `encoded` is the distribution of the
    successful responses as in Histogram, empty if there were none.
    """

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="load_results")
    number = models.PositiveSmallIntegerField()
    rate = models.FloatField(null=True, help_text="Offered, requests a second; null if closed.")
    connections = models.PositiveIntegerField()
    streams = models.PositiveIntegerField()
    passed = models.BooleanField(null=True)
    reason = models.TextField(blank=True)
    validity = models.CharField(max_length=8)
    reasons = models.JSONField(default=list)
    readings = models.JSONField(default=dict)
    encoded = models.BinaryField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["trial", "number"], name="load_result_once"),
            models.CheckConstraint(
                condition=Q(validity__in=[str(value) for value in Validity]),
                name="load_result_validity_known",
            ),
        ]

    def __str__(self) -> str:
        return f"load {self.number} of {self.trial_id}"


class Artifact(models.Model):
    """A file of a trial, compressed with zlib: raw output, rows, logs."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=60)
    sha256 = models.CharField(max_length=64, help_text="Of the content before compression.")
    size = models.PositiveBigIntegerField()
    compressed = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "name"], name="artifact_once")]

    def __str__(self) -> str:
        return self.name
