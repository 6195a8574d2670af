"""Results of golden runs of hosts."""

from django.db import models
from django.db.models import Q

from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run


class GoldenVerdict(models.TextChoices):
    LEARNING = "learning", "Learning"
    STEADY = "steady", "Steady"
    SLOW_DRIFT = "slow drift", "Slow drift"
    UNUSUAL = "unusual", "Measured again"
    DRIFTED = "drifted", "Drifted"
    FAILED = "failed", "Failed"
    NOT_JUDGED = "not judged", "Not judged"


class GoldenOutcome(models.Model):
    """The result of a golden run.

    `readings` are medians, case key → metric key → value. Later runs of the same commit and
    definition in the same epoch of the host are compared with those that are a reference. An
    unusual value is measured again at once: the host is quarantined only if this confirms it.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="golden_outcome")
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="golden_outcomes")
    verdict = models.CharField(max_length=10, choices=GoldenVerdict.choices)
    readings = models.JSONField(default=dict)
    epoch = models.PositiveIntegerField(help_text="Changes of the host that came before.")
    is_reference = models.BooleanField()
    message = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["host", "-at"], name="golden_outcome_by_host")]
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict__in=GoldenVerdict.values), name="golden_verdict_known"
            ),
            models.CheckConstraint(
                condition=Q(is_reference=False)
                | Q(verdict__in=["learning", "steady", "slow drift"]),
                name="golden_reference_was_steady",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} at {self.at:%Y-%m-%d %H:%M}"
