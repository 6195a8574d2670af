"""Alerts with what members did about them, and channels that notify a team of events."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import Team, User
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.core.ids import new_id
from orchestrator.results.models import ChangePoint
from orchestrator.runs.models import Run


class AlertState(models.TextChoices):
    OPEN = "open", "Open"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    CONFIRMED = "confirmed", "Confirmed"
    SILENCED = "silenced", "Silenced"
    RESOLVED = "resolved", "Resolved"
    ACCEPTED = "accepted", "Accepted"
    DISMISSED = "dismissed", "Dismissed"


class AlertKind(models.TextChoices):
    """What an alert reports: one change, several small ones, or a commit that fails."""

    REGRESSION = "regression", "Regression"
    SMALL_CHANGES = "small_changes", "Small changes together"
    BROKEN = "broken", "Broken commit"


#: Nothing is left to do about an alert in one of these states.
ALERT_ENDED = frozenset({AlertState.RESOLVED, AlertState.ACCEPTED, AlertState.DISMISSED})


class Alert(models.Model):
    """A regression that a member should handle: one alert, however many cases and metrics show it.

    `change_point` is the one that shows it most clearly; `change_points` are all of them, on one
    host. An alert of small changes has several of one series; they add up to `total_change`,
    between `total_low` and `total_high`, and `summary` says from where. That of a broken commit has
    none, but `commit`, the `branch` that a schedule follows, the `runs` that showed it, and the
    keys of the broken cases (`broken_cases`). `confirmed`: a confirmation run confirmed it; false
    if nothing could be measured again. The state of the same name is the judgement of a member. A
    silenced alert reopens at `silenced_until`. `fixed_by`: the later commit that restored the
    level. `log`: {"at", "by", "text"} of each action; `by` is empty for actions of Pitwall itself.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="alerts")
    kind = models.CharField(max_length=13, choices=AlertKind.choices, default=AlertKind.REGRESSION)
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="alerts")
    change_point = models.ForeignKey(
        ChangePoint, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    change_points = models.ManyToManyField(ChangePoint, related_name="alerts")
    commit = models.ForeignKey(
        Commit, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    branch = models.CharField(max_length=200, blank=True)
    runs = models.ManyToManyField(Run, related_name="alerts")
    broken_cases = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    summary = models.TextField(blank=True)
    total_change = models.FloatField(null=True, blank=True)
    total_low = models.FloatField(null=True, blank=True)
    total_high = models.FloatField(null=True, blank=True)
    state = models.CharField(max_length=12, choices=AlertState.choices, default=AlertState.OPEN)
    confirmed = models.BooleanField()
    assignee = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="alerts"
    )
    note = models.TextField(blank=True)
    silenced_until = models.DateTimeField(null=True, blank=True)
    fixed_by = models.ForeignKey(
        Commit, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    log = models.JSONField(default=list, blank=True)
    raised_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["team", "-id"], name="alert_by_team"),
            models.Index(fields=["team"], condition=Q(state="open"), name="alert_open_by_team"),
            models.Index(
                fields=["silenced_until"],
                condition=Q(state="silenced"),
                name="alert_silenced_until",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=AlertState.values), name="alert_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state="silenced", silenced_until__isnull=False)
                | (~Q(state="silenced") & Q(silenced_until__isnull=True)),
                name="alert_silenced_until_then",
            ),
            models.CheckConstraint(
                condition=Q(kind="broken", change_point=None, commit__isnull=False)
                | Q(kind__in=["regression", "small_changes"], change_point__isnull=False),
                name="alert_has_its_subject",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} at {self.commit_id or self.change_point}"


class EventKind(models.TextChoices):
    """Kinds of events; `test` is sent by the channel's test button."""

    RUN_ENDED = "run.ended", "A run has ended"
    ALERT_RAISED = "alert.raised", "An alert is raised"
    ALERT_CHANGED = "alert.changed", "An alert has changed"
    TEST = "test", "Test"


class ChannelKind(models.TextChoices):
    WEBHOOK = "webhook", "Webhook, signed"
    EMAIL = "email", "E-mail"
    SLACK = "slack", "Slack"
    TEAMS = "teams", "Microsoft Teams"
    MATRIX = "matrix", "Matrix"


class Digest(models.TextChoices):
    IMMEDIATE = "immediate", "Immediately"
    HOURLY = "hourly", "Once an hour"
    DAILY = "daily", "Once a day"


class Channel(models.Model):
    """A way to notify a team, or its programs, of events.

    `sealed_url` is the address, which is a secret for most chats; `target` is the part that pages
    show. `sealed_secret` signs the requests to a webhook. E-mail has `addresses` instead of both.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="channels")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=8, choices=ChannelKind.choices)
    target = models.CharField(max_length=300)
    sealed_url = models.BinaryField(null=True, editable=False)
    sealed_secret = models.BinaryField(null=True, editable=False)
    addresses = ArrayField(models.EmailField(), default=list, blank=True)
    events = ArrayField(models.CharField(max_length=20), default=list)
    digest = models.CharField(max_length=9, choices=Digest.choices, default=Digest.IMMEDIATE)
    enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="channel_name_once"),
            models.CheckConstraint(
                condition=Q(kind="email", sealed_url=None) & ~Q(addresses=[])
                | ~Q(kind="email") & Q(sealed_url__isnull=False, addresses=[]),
                name="channel_goes_somewhere",
            ),
            models.CheckConstraint(
                condition=Q(kind="webhook", sealed_secret__isnull=False, digest="immediate")
                | ~Q(kind="webhook") & Q(sealed_secret=None),
                name="channel_webhook_is_signed",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Event(models.Model):
    """An event, stored once, whichever worker detects it first.

    `version` distinguishes repeated events of the same object. `data` is the part for webhooks.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(max_length=20, choices=EventKind.choices)
    subject = models.UUIDField()
    version = models.CharField(max_length=40, blank=True)
    data = models.JSONField()
    at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "subject", "version"], name="event_once")
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.subject}"


class DeliveryState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Failed"


class Delivery(models.Model):
    """One message of a channel: one event, or the digest of several.

    A worker claims it by moving `next_at` ahead; if the worker dies, it becomes due again. `tries`
    counts since it was created or replayed; `log` has all of them: {"at", "status", "ms", "error",
    "answer"}. `headers` and `body` are those of the last try, without secrets.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    events = models.ManyToManyField(Event, related_name="deliveries")
    state = models.CharField(
        max_length=9, choices=DeliveryState.choices, default=DeliveryState.WAITING
    )
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    headers = models.JSONField(default=dict, blank=True)
    body = models.TextField(blank=True)
    log = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-pk"]
        indexes = [
            models.Index(
                fields=["next_at"], condition=Q(state="waiting"), name="delivery_waiting_by_time"
            ),
            models.Index(fields=["channel", "-id"], name="delivery_by_channel"),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"
