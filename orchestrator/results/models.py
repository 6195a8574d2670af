"""What was measured, what it said of the hosts, and what others have published.

Rows of what was measured are only ever inserted; a trigger of the database refuses updates.
"""

from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import Team, User
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.core.ids import new_id
from orchestrator.fleet.models import HardwareProfile, Host
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import Validity


class Metric(models.Model):
    """A key of the registry in `orchestrator.loadtools.metrics`, as a small number."""

    id = models.SmallAutoField(primary_key=True)
    key = models.CharField(max_length=60, unique=True)

    def __str__(self) -> str:
        return self.key


class Measurement(models.Model):
    """One metric of one trial, in the metric's SI unit. What is unknown has no row."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="measurements")
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="measurements")
    value = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "metric"], name="measurement_once")]

    def __str__(self) -> str:
        return f"{self.metric} {self.value}"


class HistogramKind(models.TextChoices):
    OK = "ok", "Answered well"
    OTHER = "other", "Answered otherwise"


class Histogram(models.Model):
    """The trial's whole latency distribution, HdrHistogram V2 encoding, in microseconds."""

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
    """One measured load of a trial that has several: a step, or a probe of a search.

    `readings`: metric key → value. `passed` is null for steps. `encoded` is the distribution of
    the good answers as in Histogram, empty where there were none.
    """

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="load_results")
    number = models.PositiveSmallIntegerField()
    rate = models.FloatField(null=True, help_text="Offered, requests a second; null if closed.")
    connections = models.PositiveIntegerField()
    streams = models.PositiveIntegerField()
    passed = models.BooleanField(null=True)
    why = models.TextField(blank=True)
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
    """A file that a trial left behind, compressed with zlib: raw output, rows, logs."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=60)
    sha256 = models.CharField(max_length=64, help_text="Of the content before compression.")
    size = models.PositiveBigIntegerField()
    compressed = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "name"], name="artifact_once")]

    def __str__(self) -> str:
        return self.name


class GoldenVerdict(models.TextChoices):
    LEARNING = "learning", "Learning"
    STEADY = "steady", "Steady"
    DRIFTED = "drifted", "Drifted"
    FAILED = "failed", "Failed"
    NOT_JUDGED = "not judged", "Not judged"


class GoldenOutcome(models.Model):
    """What a golden run said of its host.

    `readings` are medians, case key → metric key → value. Later runs of the same commit and
    definition in the same epoch of the host are compared with those that are a reference.
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
                condition=Q(is_reference=False) | Q(verdict__in=["learning", "steady"]),
                name="golden_reference_was_steady",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} at {self.at:%Y-%m-%d %H:%M}"


class Calibration(models.Model):
    """The noise floor of a host: what a commit measured against itself on it.

    `readings`: case key → metric key → {"pairs", "sigma", "low", "high", "mean", "mean_low",
    "mean_high"} as `stats.noise.Noise` has them. Where it is empty, `message` says why.
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


class ReferenceSource(models.Model):
    """A report or a file of results that others measured; `origin` says where it is from."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="reference_sources")
    name = models.CharField(max_length=100)
    origin = models.TextField(blank=True, help_text="Its address, or words that find it.")
    format = models.CharField(max_length=40)
    imported_at = models.DateTimeField(help_text="Of the last import.")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="reference_source_name_once")
        ]

    def __str__(self) -> str:
        return self.name


class ReferenceResult(models.Model):
    """One figure of a source, never mixed with what was measured here.

    A `metric` of our registry is in our unit; any other keeps the name and the unit that it came
    with. A `value` that is null is unknown; `sentinel` is what stood in its place. `key` is the
    hash of all that tells one figure from another, so that a file imported again doubles nothing.
    """

    source = models.ForeignKey(ReferenceSource, on_delete=models.CASCADE, related_name="results")
    key = models.CharField(max_length=32)
    position = models.PositiveIntegerField(help_text="In the order of the file.")
    suite = models.CharField(max_length=300, blank=True)
    profile = models.ForeignKey(
        HardwareProfile, on_delete=models.SET_NULL, null=True, related_name="reference_results"
    )
    environment = models.CharField(
        max_length=300, blank=True, help_text="The machine, as the source names it."
    )
    parameters = models.JSONField(default=dict)
    metric = models.CharField(max_length=300)
    unit = models.CharField(max_length=60, blank=True)
    better = models.CharField(max_length=6, blank=True, help_text="higher, lower, or unknown.")
    statistic = models.CharField(max_length=60, blank=True)
    value = models.FloatField(null=True)
    sentinel = models.CharField(max_length=100, blank=True)
    measured_at = models.DateTimeField(null=True)
    commit = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["position"]
        indexes = [models.Index(fields=["source", "position"], name="reference_by_position")]
        constraints = [
            models.UniqueConstraint(fields=["source", "key"], name="reference_result_once"),
            models.CheckConstraint(
                condition=Q(better__in=["higher", "lower", ""]), name="reference_better_known"
            ),
            models.CheckConstraint(
                condition=Q(value__isnull=True) | Q(sentinel=""),
                name="reference_sentinel_is_no_value",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric} {self.value}"


class SavedReport(models.Model):
    """A report that a team keeps under a name; `source` is its YAML."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="saved_reports")
    slug = models.SlugField(max_length=60)
    title = models.CharField(max_length=200)
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="reports")
    source = models.TextField()
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["title"]
        constraints = [
            models.UniqueConstraint(fields=["team", "slug"], name="saved_report_slug_once")
        ]

    def __str__(self) -> str:
        return self.title
