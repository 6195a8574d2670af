"""Uploaded files of results, which a worker imports step by step."""

from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import ApiToken, Team, User
from orchestrator.core.ids import new_id


class ImportState(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    READY = "ready", "Ready to import"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


IMPORT_ENDED = frozenset({ImportState.DONE, ImportState.FAILED})


class UnknownCommits(models.TextChoices):
    """What happens to the results of commits that are not in the repository."""

    KEEP = "keep", "Keep them as reported commits with their dates"
    SKIP = "skip", "Leave out their results"


class ResultImport(models.Model):
    """A file of results that a client sent, and the progress of its import.

    `token` is null if it was sent by a page. `project` is the slug for results that name none.
    `total` is null until the file was checked; `checked`, `done` and `accepted` count results.
    `faults` are [location, message] of a failed import. A worker holds `claim` until
    `claimed_until` by the database's clock, and renews it; `tries` counts claims since the last
    progress.

    For the history of another tool, `history` has the options. A worker writes `preview`, and the
    import is ready. A member starts it with `unknown_commits`. Then the parts are replaced by
    results in Pitwall's format (`converted`), which are imported like any other.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    sender = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, related_name="+")
    project = models.CharField(max_length=60, blank=True)
    name = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField(help_text="Bytes, as it was sent.")
    state = models.CharField(max_length=7, choices=ImportState.choices, default=ImportState.QUEUED)
    checked = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True)
    done = models.PositiveIntegerField(default=0)
    accepted = models.PositiveIntegerField(default=0)
    faults = models.JSONField(default=list)
    history = models.JSONField(null=True)
    preview = models.JSONField(null=True)
    unknown_commits = models.CharField(max_length=4, choices=UnknownCommits.choices, blank=True)
    converted = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_step_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)

    class Meta:
        indexes = [
            models.Index(
                fields=["last_step_at"],
                condition=Q(state__in=["queued", "running"]),
                name="import_going_on",
            ),
            models.Index(fields=["team", "-id"], name="import_by_team"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=ImportState.values), name="import_state_known"
            ),
            models.CheckConstraint(
                condition=Q(accepted__lte=models.F("done")), name="import_counts_add_up"
            ),
            models.CheckConstraint(
                condition=~Q(state="ready") | Q(history__isnull=False, preview__isnull=False),
                name="import_ready_has_a_preview",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.done} of {self.total}"

    @property
    def repeated(self) -> int:
        return self.done - self.accepted

    @property
    def has_preview(self) -> bool:
        """Return whether the preview of a history is complete."""
        return self.preview is not None and "format" in self.preview

    @property
    def is_ready(self) -> bool:
        return self.state == ImportState.READY

    @property
    def is_going_on(self) -> bool:
        """Return whether a worker processes it, or will do so."""
        return self.state in (ImportState.QUEUED, ImportState.RUNNING)

    @property
    def has_ended(self) -> bool:
        return self.state in IMPORT_ENDED


class ImportPart(models.Model):
    """A piece of the file, stored until the import ends.

    It is in the database because workers may run on other machines than the web processes.
    """

    result_import = models.ForeignKey(ResultImport, on_delete=models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["result_import", "number"], name="import_part_once")
        ]

    def __str__(self) -> str:
        return f"part {self.number} of {self.result_import_id}"
