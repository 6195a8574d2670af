"""The noise between builds on hosts, as calibrations measured it."""

from django.db import models
from django.db.models import Q

from orchestrator.results.models.series import Series
from orchestrator.runs.models import Run


class HostBuildNoise(models.Model):
    """How much builds of one commit differ in a series, from a calibration (`stats.build_noise`).

    `sigma` is the standard deviation of logs, `low` and `high` are its 95 % interval. `epoch`
    counts the earlier changes of the host. The newest row of an epoch counts. Insert-only.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="build_noises")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="build_noises")
    epoch = models.PositiveIntegerField()
    builds = models.PositiveSmallIntegerField(help_text="The number of measured builds.")
    sigma = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    degrees = models.FloatField(help_text="Degrees of freedom of the variance.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "series"], name="host_build_noise_once"),
            models.CheckConstraint(
                condition=Q(sigma__gte=0) & Q(degrees__gte=1), name="host_build_noise_in_range"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sigma:.4f} between {self.builds} builds in {self.series_id}"
