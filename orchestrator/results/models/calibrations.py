"""Results of calibrations of hosts."""

from django.db import models

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run


class Calibration(models.Model):
    """The noise floor of a host, from a commit that was measured against itself.

    `readings`: case key → metric key → {"pairs", "sigma", "low", "high", "mean", "mean_low",
    "mean_high", "excluded"} as `stats.noise.Noise` has them. If it is empty, `message` says why.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="calibration")
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="calibrations")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="calibrations")
    commit = models.ForeignKey(Commit, on_delete=models.PROTECT, related_name="+")
    epoch = models.PositiveIntegerField(help_text="Changes of the host that came before.")
    readings = models.JSONField(default=dict)
    message = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["host", "-at"], name="calibration_by_host")]

    def __str__(self) -> str:
        return f"{self.host} with {self.benchmark} at {self.at:%Y-%m-%d %H:%M}"
