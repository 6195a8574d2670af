"""Reference results of other publishers, and the saved reports of a team."""

from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import Team, User
from orchestrator.benchmarks.models import Benchmark
from orchestrator.core.ids import new_id
from orchestrator.fleet.models import HardwareProfile


class ReferenceSource(models.Model):
    """A report or a file with results that others measured; `origin` says where it is from."""

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
    """One value of a source, never mixed with Pitwall's measurements.

    A `metric` of our registry is in our unit; any other keeps its name and unit. A `value` of null
    is unknown; `sentinel` is the text in its place. `key` is a hash of all identifying fields, so
    that a second import of the same file adds nothing.
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
    """A report that a team saves under a name; `source` is its YAML.

    `shows_hardware` and `shows_published`: visitors see its hardware, and reference results.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="saved_reports")
    slug = models.SlugField(max_length=60)
    title = models.CharField(max_length=200)
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="reports")
    source = models.TextField()
    shows_hardware = models.BooleanField(default=False, db_default=False)
    shows_published = models.BooleanField(default=False, db_default=False)
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
