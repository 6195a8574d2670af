"""Golden runs: control measurements of a host."""

from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import User
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.fleet.models import Host
from orchestrator.runs.models.runs import Run


class GoldenCheck(models.Model):
    """A reference benchmark that a host runs regularly, to detect its own drift.

    The commit and the definition never change, so any change comes from the host.
    """

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="golden")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="+")
    commit = models.ForeignKey(Commit, on_delete=models.PROTECT, related_name="+")
    every_hours = models.PositiveIntegerField(null=True, blank=True)
    every_jobs = models.PositiveIntegerField(null=True, blank=True)
    tolerance = models.FloatField(default=0.05, help_text="Share of drift that is allowed.")
    created_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    last_run = models.ForeignKey(
        Run, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    last_at = models.DateTimeField(null=True, blank=True)
    judged = models.BooleanField(default=True, help_text="The last run's outcome was looked at.")
    repeats = models.BooleanField(
        default=False, help_text="The last value was unusual: it is measured again at once."
    )
    message = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(every_hours__gte=1) | Q(every_jobs__gte=1),
                name="golden_is_due_some_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.benchmark} on {self.host}"
