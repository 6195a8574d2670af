"""Series, their points, and single readings.

Only `measurements.recording` and `.bulk_import` write these tables. A point is a rollup of readings
that is written in the same transaction. Histories and comparisons read points only.
"""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.fleet.models import Host
from orchestrator.results.models.trials import Metric
from orchestrator.runs.states import Validity


class Reading(models.Model):
    """All metrics of one trial: `values[i]` belongs to the metric `metrics[i]`, in its SI unit.

    `id` is that of our trial, or derived from the client's result, so that the same result is
    imported once. `provenance` comes from the client; null for Pitwall's trials, which store it.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    case = models.ForeignKey(
        Case, on_delete=models.CASCADE, related_name="readings", db_index=False
    )
    commit = models.ForeignKey(
        Commit, on_delete=models.CASCADE, related_name="readings", db_index=False
    )
    at = models.DateTimeField()
    host = models.ForeignKey(
        Host, on_delete=models.PROTECT, related_name="readings", db_index=False
    )
    validity = models.CharField(max_length=8)
    metrics = ArrayField(models.IntegerField())
    values = ArrayField(models.FloatField())
    provenance = models.JSONField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["case", "commit"], name="reading_by_case"),
            # For the retention. Rows arrive almost in order of time, so a BRIN index of some kB is
            # enough.
            BrinIndex(fields=["at"], autosummarize=True, name="reading_by_time"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(validity__in=[str(value) for value in Validity]),
                name="reading_validity_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{len(self.metrics)} metrics of {self.id}"


class Series(models.Model):
    """One metric of one case on one host; rows of other tables refer to its number."""

    id = models.BigAutoField(primary_key=True)
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="series")
    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="series", db_index=False)
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="series")
    metric = models.ForeignKey(
        Metric, on_delete=models.PROTECT, related_name="series", db_index=False
    )

    class Meta:
        verbose_name_plural = "series"
        constraints = [
            models.UniqueConstraint(fields=["case", "host", "metric"], name="series_once")
        ]

    def __str__(self) -> str:
        return f"{self.metric_id} of {self.case_id} on {self.host_id}"


#: The most single values in a point; its sums include all.
MOST_VALUES = 256


class Point(models.Model):
    """The trials of one commit in a series: histories draw it, and comparisons pair it.

    `values` are the latest MOST_VALUES values of valid and suspect trials, each with its block
    (`blocks`; 0 if it has none), its place in the order of its job (`places`, from 1; 0 if it is
    not known), its run (`runs`) and a number that identifies its build (`builds`); 0 if these are
    not known. Values of two commits with the same block are a pair. `mean` is the arithmetic mean
    of all values. `run_count` is the number of different `runs`. `mean_log` and `m2_log` are the
    mean of their mean logs and the sum of squares around it, null if a value is zero or less.
    `stats.rollup` computes the value and its interval from these. `epoch` counts the earlier
    changes of the host. `configuration` identifies what exactly was measured (0 if unknown). Points
    that differ in either are not comparable. `position` is the commit's, maintained by a trigger of
    the database.
    """

    pk = models.CompositePrimaryKey("series_id", "commit_id", "epoch", "configuration")
    commit = models.ForeignKey(
        Commit, on_delete=models.CASCADE, related_name="points", db_index=False
    )
    at = models.DateTimeField(help_text="Of its newest trial.")
    mean = models.FloatField(null=True)
    run_count = models.IntegerField()
    mean_log = models.FloatField(null=True)
    m2_log = models.FloatField(null=True)
    series = models.ForeignKey(
        Series, on_delete=models.CASCADE, related_name="points", db_index=False
    )
    position = models.IntegerField(null=True)
    configuration = models.IntegerField()
    epoch = models.SmallIntegerField()
    trials = models.IntegerField(help_text="Trials that count: valid or suspect.")
    suspect = models.IntegerField()
    invalid = models.IntegerField(help_text="Trials that were left out.")
    values = ArrayField(models.FloatField())
    blocks = ArrayField(models.BigIntegerField())
    places = ArrayField(models.IntegerField())
    runs = ArrayField(models.BigIntegerField())
    builds = ArrayField(models.IntegerField())

    class Meta:
        indexes = [
            models.Index(
                fields=["series", "position"],
                include=[
                    "commit", "at", "epoch", "configuration", "mean", "run_count", "mean_log",
                    "m2_log", "trials", "suspect", "invalid",
                ],
                name="point_along_commits",
            ),
            models.Index(fields=["commit", "series"], name="point_by_commit"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.trials} × {self.mean}"
