"""Alerts: what a team is told of its change points, and what people did about it."""

from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import Team, User
from orchestrator.benchmarks.models import Commit
from orchestrator.core.ids import new_id
from orchestrator.results.models import ChangePoint


class AlertState(models.TextChoices):
    OPEN = "open", "Open"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    CONFIRMED = "confirmed", "Confirmed"
    SILENCED = "silenced", "Silenced"
    RESOLVED = "resolved", "Resolved"
    ACCEPTED = "accepted", "Accepted"
    DISMISSED = "dismissed", "False alarm"


#: Nothing is left to do about an alert in one of these.
ALERT_ENDED = frozenset({AlertState.RESOLVED, AlertState.ACCEPTED, AlertState.DISMISSED})


class Alert(models.Model):
    """A regression that someone should look at: one, however many cases and metrics show it.

    `change_point` is the one that shows it most; `change_points` are all of them, on one host.
    `confirmed`: a duel confirmed it; where nothing could be measured again it is not. The state of
    the same name is what somebody says who looked at it. One that is silenced opens again by itself
    at `silenced_until`. `mended_by`: the later commit that brought the level back. `log`: {"at",
    "by", "text"} for each thing done about it; `by` is empty where Pitwall did it by itself.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="alerts")
    change_point = models.ForeignKey(ChangePoint, on_delete=models.CASCADE, related_name="+")
    change_points = models.ManyToManyField(ChangePoint, related_name="alerts")
    state = models.CharField(max_length=12, choices=AlertState.choices, default=AlertState.OPEN)
    confirmed = models.BooleanField()
    assignee = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="alerts"
    )
    note = models.TextField(blank=True)
    silenced_until = models.DateTimeField(null=True, blank=True)
    mended_by = models.ForeignKey(
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
        ]

    def __str__(self) -> str:
        return f"alert of {self.change_point}"
