"""A project's connection to the forge of its repository, and the requests that arrive over it."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import User
from orchestrator.benchmarks.models import Project
from orchestrator.core.ids import new_id
from orchestrator.runs.models import Run


class ForgeKind(models.TextChoices):
    GITHUB = "github", "GitHub"
    GITLAB = "gitlab", "GitLab"
    GITEA = "gitea", "Gitea or Forgejo"


class Connection(models.Model):
    """The forge of a project's pull requests, and what users may request there.

    `sealed_secret` verifies what the forge sends; `sealed_token` is for its API (null: Pitwall only
    receives). `allowed_users` are names on the forge. Their requests are measured on `hosts` within
    `budget_minutes` of machine time, as a run of `created_by`. `fetch_due_at`: since when a fetch
    is due.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="forge")
    kind = models.CharField(max_length=6, choices=ForgeKind.choices)
    api_url = models.CharField(max_length=300)
    repository = models.CharField(max_length=200)
    sealed_token = models.BinaryField(null=True, editable=False)
    sealed_secret = models.BinaryField(editable=False)
    allowed_users = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    hosts = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    budget_minutes = models.PositiveIntegerField(default=60)
    fetch_due_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.repository} on {self.get_kind_display()}"


class ReceivedWebhook(models.Model):
    """A verified delivery of the forge, and its outcome; each id counts once."""

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="webhooks")
    delivery_id = models.CharField(max_length=100)
    event = models.CharField(max_length=60)
    outcome = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "webhooks"
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "delivery_id"], name="received_webhook_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.delivery_id}"


class PullRequest(models.Model):
    """A pull request with a requested benchmark (a merge request on GitLab).

    `comment_id` is the forge's id of our comment, `published` the digest of its text. Work is due
    at `next_at`. The worker that does it has the `claim` until `claimed_until` and renews it. Both
    times are by the database's clock.
    """

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="pulls")
    number = models.PositiveIntegerField()
    comment_id = models.CharField(max_length=40, blank=True)
    published = models.CharField(max_length=64, blank=True)
    next_at = models.DateTimeField(null=True, blank=True, db_index=True)
    claim = models.UUIDField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    problem = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["connection", "number"], name="pull_request_once")
        ]

    def __str__(self) -> str:
        return f"#{self.number} of {self.connection.repository}"


class RequestState(models.TextChoices):
    REQUESTED = "requested", "Requested"
    WAITING = "waiting", "Waiting for approval"
    APPROVED = "approved", "Approved"
    STARTED = "started", "Started"
    ENDED = "ended", "Ended"
    DECLINED = "declined", "Declined"


class BenchmarkRequest(models.Model):
    """`/benchmark <name>` in a comment: for the commit that was the head at that time.

    `requested_by` is a name on the forge. A request from a fork waits until a member has approved
    its `head_sha`. `status` is the last commit status that was sent to the forge.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    pull = models.ForeignKey(PullRequest, on_delete=models.CASCADE, related_name="requests")
    note_id = models.CharField(max_length=40)
    requested_by = models.CharField(max_length=100)
    benchmark = models.CharField(max_length=60)
    head_sha = models.CharField(max_length=40, blank=True)
    base_branch = models.CharField(max_length=200, blank=True)
    from_fork = models.BooleanField(default=False)
    state = models.CharField(
        max_length=9, choices=RequestState.choices, default=RequestState.REQUESTED
    )
    message = models.TextField(blank=True)
    run = models.OneToOneField(
        Run, on_delete=models.SET_NULL, null=True, blank=True, related_name="forge_request"
    )
    approved_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    status = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField()
    fetch_requested_at = models.DateTimeField(null=True, blank=True)
    fetches = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="How often a fetch was requested for it."
    )

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["pull", "note_id", "benchmark"], name="benchmark_request_once"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["requested", "declined"]) | ~Q(head_sha=""),
                name="benchmark_request_is_pinned",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.benchmark} on {self.pull}"
