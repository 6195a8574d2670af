"""Retention settings, pins and a log of what was removed."""

from django.db import models
from django.db.models import F, Q

from orchestrator.accounts.models import User
from orchestrator.benchmarks.models import Case, Commit, Definition, Project
from orchestrator.fleet.models import Host
from orchestrator.results.models.trials import HistogramKind
from orchestrator.runs.models import Run

#: Default days for raw output and the distributions of single trials.
FILES_DAYS = 90
DISTRIBUTIONS_DAYS = 400


def _build_order_condition(later: str, earlier: str) -> Q:
    """Return the condition that null (permanently) is the longest retention."""
    kept = Q(**{f"{later}__isnull": True})
    return kept | (Q(**{f"{earlier}__isnull": False}) & Q(**{f"{later}__gte": F(earlier)}))


class Retention(models.Model):
    """How many days after the end of a run a project keeps its data; null: permanently.

    Raw output is removed first. The distributions of single trials follow (merged into one per
    point), then the rows of trials, and last the points of all but every n-th commit
    (`keep_every`). The tasks process the project again at `next_at`.
    """

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="retention")
    files_days = models.PositiveIntegerField(null=True, default=FILES_DAYS)
    distributions_days = models.PositiveIntegerField(null=True, default=DISTRIBUTIONS_DAYS)
    trials_days = models.PositiveIntegerField(null=True, default=None)
    points_days = models.PositiveIntegerField(null=True, default=None)
    keep_every = models.PositiveSmallIntegerField(null=True, default=None)
    next_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(files_days__isnull=True) | Q(files_days__gte=1),
                name="retention_files_a_day",
            ),
            models.CheckConstraint(
                condition=_build_order_condition("distributions_days", "files_days")
                & _build_order_condition("trials_days", "distributions_days")
                & _build_order_condition("points_days", "trials_days"),
                name="retention_raw_first",
            ),
            models.CheckConstraint(
                condition=Q(points_days__isnull=True, keep_every__isnull=True)
                | Q(points_days__isnull=False, keep_every__isnull=False, keep_every__gte=2),
                name="retention_thins_by_a_number",
            ),
        ]

    def __str__(self) -> str:
        return f"retention of {self.project}"


class Pin(models.Model):
    """A commit or a run whose data is kept permanently; exactly one of the two is set."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="pins")
    commit = models.OneToOneField(Commit, on_delete=models.CASCADE, null=True, related_name="pin")
    run = models.OneToOneField(Run, on_delete=models.CASCADE, null=True, related_name="pin")
    reason = models.CharField(max_length=200)
    pinned_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    pinned_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pinned_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(commit__isnull=False, run__isnull=True)
                | Q(commit__isnull=True, run__isnull=False),
                name="pin_holds_one_thing",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="pin_has_a_reason"),
        ]

    def __str__(self) -> str:
        return str(self.commit or self.run)


class RemovalKind(models.TextChoices):
    """What is removed, in this order."""

    FILES = "files", "Raw output"
    DISTRIBUTIONS = "distributions", "Distributions of single trials"
    TRIALS = "trials", "Single trials"
    READINGS = "readings", "Single results from elsewhere"
    POINTS = "points", "Points of commits between"


_SUMMARY = {
    RemovalKind.FILES: "raw output was",
    RemovalKind.DISTRIBUTIONS: (
        "the distributions of single trials were merged into one a commit and"
    ),
    RemovalKind.TRIALS: "single trials were",
    RemovalKind.READINGS: "single results were",
    RemovalKind.POINTS: "points were",
}


class Removal(models.Model):
    """What the retention removed: one row per run and kind, or per project and batch.

    While `ended_at` is null, more is to be removed. The worker that removes locks the row.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="removals")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="removals")
    kind = models.CharField(max_length=13, choices=RemovalKind.choices)
    after_days = models.PositiveIntegerField(help_text="The retention that held.")
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    rows = models.PositiveBigIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["-began_at"]
        indexes = [models.Index(fields=["project", "-began_at"], name="removal_by_project")]
        constraints = [
            models.UniqueConstraint(fields=["run", "kind"], name="removal_of_a_run_once"),
            models.CheckConstraint(
                condition=Q(kind__in=RemovalKind.values), name="removal_kind_is_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rows} × {self.kind}"

    @property
    def summary(self) -> str:
        """`raw output was removed after 90 days, on 2026-03-01`."""
        kind = _SUMMARY[RemovalKind(self.kind)]
        return f"{kind} removed after {self.after_days} days, on {self.began_at:%Y-%m-%d}"


class PointHistogram(models.Model):
    """The distributions of the trials of a point, merged when those were removed.

    It contains valid and suspect trials of one version of the definition. `encoded` is as in
    Histogram. `trials` were merged, `suspect` of them were suspect; `excluded` were invalid.
    """

    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="point_histograms")
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+")
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="point_histograms")
    definition = models.ForeignKey(Definition, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=5, choices=HistogramKind.choices)
    encoded = models.BinaryField()
    count = models.PositiveBigIntegerField()
    trials = models.PositiveIntegerField()
    suspect = models.PositiveIntegerField()
    excluded = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["commit", "case", "host", "definition", "kind"],
                name="point_histogram_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} × {self.count} of {self.trials} trials"
