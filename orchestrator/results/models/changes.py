"""Change points of series with their state, and the starts of histories."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from cli.pitwall.units import format_change
from orchestrator.accounts.models import User
from orchestrator.benchmarks.models import Case, Commit
from orchestrator.core.ids import new_id
from orchestrator.results.models.imports import ResultImport
from orchestrator.results.models.series import Series
from orchestrator.runs.models import Run


class ChangeKind(models.TextChoices):
    ALERT = "alert", "Sure"
    CANDIDATE = "candidate", "Suspected"


class ChangeState(models.TextChoices):
    OPEN = "open", "Not confirmed"
    CONFIRMING = "confirming", "Being measured again"
    CONFIRMED = "confirmed", "Confirmed"
    SMALL = "small", "Confirmed, small"
    REFUTED = "refuted", "Refuted"
    DISMISSED = "dismissed", "Dismissed"
    SUPERSEDED = "superseded", "Superseded"


#: A confirmation run proved the change. A small one is not beyond the margin, or not surely.
CHANGE_REAL = frozenset({ChangeState.CONFIRMED, ChangeState.SMALL})
#: Final states of a change point: a detection that no longer finds it changes nothing.
CHANGE_JUDGED = CHANGE_REAL | {ChangeState.REFUTED, ChangeState.DISMISSED}


class ChangedSeries(models.Model):
    """Series whose points were written since their last detection.

    A write adds one row, and the detection deletes the rows. Rows are never updated, so that
    writers do not wait for each other or for a detection. Those of an imported history
    (`history_import`) wait for its end, and the changes in them are no news.
    """

    series = ArrayField(models.BigIntegerField())
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="A detection that failed is repeated then."
    )
    failures = models.PositiveSmallIntegerField(default=0, db_default=0)
    history_import = models.ForeignKey(
        ResultImport, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    def __str__(self) -> str:
        return f"{len(self.series)} series"


class SeriesDetection(models.Model):
    """The result of the last detection in a series, in addition to its change points."""

    series = models.OneToOneField(
        Series, on_delete=models.CASCADE, primary_key=True, related_name="detection"
    )
    at = models.DateTimeField()
    points = models.PositiveIntegerField()
    noise = models.FloatField(help_text="One sigma of a point, as a share.")
    unstable = models.BooleanField(help_text="It shifts so often that no alert is given.")
    outliers = ArrayField(models.BigIntegerField(), default=list, help_text="Ids of commits.")

    def __str__(self) -> str:
        return f"{self.series_id}: {self.points} points"


class ChangePoint(models.Model):
    """A commit at which the level of a series shifts.

    `commit` is the first of the new level and `before` the last of the old one, among the measured
    commits on the main line of the default branch. `change` is the new level / the old one − 1,
    with the interval `low` to `high`. A confirmation run of the two commits (`run`) confirms or
    refutes a suspicion; `confirmed_change` is the change that it measured, in `confirmed_blocks`
    blocks. `confirmed_error` is the standard error of its log. `message` is the reason why there is
    no run; with `final` there will be none. `culprit` is the one commit that a
    bisection found, or the only candidate. `seen`: the last detection still found it. `recent`: it
    was found among the latest points, and so is news. `revisions`: {"at", "text"} of each revision.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="change_points")
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="change_points")
    before = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=9, choices=ChangeKind.choices)
    change = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    p_value = models.FloatField()
    level_before = models.FloatField()
    level_after = models.FloatField()
    regressed = models.BooleanField()
    seen = models.BooleanField(default=True)
    recent = models.BooleanField()
    state = models.CharField(max_length=10, choices=ChangeState.choices, default=ChangeState.OPEN)
    final = models.BooleanField(default=False)
    message = models.TextField(blank=True)
    run = models.ForeignKey(
        Run, on_delete=models.SET_NULL, null=True, blank=True, related_name="change_points"
    )
    confirmation_runs = models.PositiveSmallIntegerField(default=0)
    confirmed_change = models.FloatField(null=True)
    confirmed_low = models.FloatField(null=True)
    confirmed_high = models.FloatField(null=True)
    confirmed_blocks = models.PositiveIntegerField(null=True)
    confirmed_error = models.FloatField(null=True)
    culprit = models.ForeignKey(
        Commit, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    revisions = models.JSONField(default=list)
    found_at = models.DateTimeField()
    revised_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["series", "commit"],
                condition=~Q(state="superseded"),
                name="change_point_once",
            ),
            models.CheckConstraint(
                condition=Q(state__in=ChangeState.values), name="change_point_state_known"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=ChangeKind.values), name="change_point_kind_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["found_at"],
                condition=Q(state__in=["open", "confirming", "confirmed", "small"]),
                name="change_point_to_look_after",
            ),
        ]

    def __str__(self) -> str:
        return f"{format_change(self.change)} at {self.commit_id}"


class Baseline(models.Model):
    """The first commit of a history: earlier measurements are ignored.

    It applies to one series, or to all series of a case.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    series = models.ForeignKey(
        Series, on_delete=models.CASCADE, null=True, blank=True, related_name="baselines"
    )
    case = models.ForeignKey(
        Case, on_delete=models.CASCADE, null=True, blank=True, related_name="baselines"
    )
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    reason = models.TextField()
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(series__isnull=True) ^ Q(case__isnull=True),
                name="baseline_of_a_series_or_a_case",
            ),
        ]

    def __str__(self) -> str:
        return f"from {self.commit_id} on"


class BisectionState(models.TextChoices):
    RUNNING = "running", "Searching"
    FOUND = "found", "Found"
    PART = "part", "Some of the effect"
    BETWEEN = "between", "Narrowed down"
    STOPPED = "stopped", "Stopped"


class Bisection(models.Model):
    """The search for the one commit that caused a confirmed change point.

    `path`: the hashes of the commits after the last good one (`good`), oldest first; the last of
    them has the change. With the state `part`, a commit was found, but it does not have all of the
    change, so it is not the culprit. `answers`: results of runs that compared commits of the path
    with `good`, as `stats.bisection.Answer` with the run. `unbuildable`: indexes of `path`. `run`
    is the current step. All state is stored here, so that a restart loses nothing.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    change_point = models.ForeignKey(
        ChangePoint, on_delete=models.CASCADE, related_name="bisections"
    )
    good = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    path = ArrayField(models.CharField(max_length=40))
    answers = models.JSONField(default=list)
    unbuildable = ArrayField(models.IntegerField(), default=list, blank=True)
    failures = models.JSONField(default=list, help_text="Runs of steps that measured nothing.")
    run = models.ForeignKey(
        Run, on_delete=models.SET_NULL, null=True, blank=True, related_name="bisections"
    )
    state = models.CharField(
        max_length=8, choices=BisectionState.choices, default=BisectionState.RUNNING
    )
    message = models.TextField(blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["change_point", "good"], name="bisection_once"),
            models.CheckConstraint(
                condition=Q(state__in=BisectionState.values), name="bisection_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"bisection of {len(self.path)} commits"
