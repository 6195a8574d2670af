"""Users, the teams that own everything, and the tokens of machines."""

from django.contrib.auth.models import AbstractUser
from django.db import models

from orchestrator.core.ids import new_id


class User(AbstractUser):
    """A person who logs in. What they may do follows from their memberships.

    `first_membership` is known of the user of a session, with whom it was read.
    """

    first_membership: "Membership | None" = None


class Team(models.Model):
    slug = models.SlugField(max_length=50, unique=True)
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    VIEWER = "viewer", "Viewer"
    MEMBER = "member", "Member"
    ADMIN = "admin", "Admin"


class Membership(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class ApiToken(models.Model):
    """A bearer token of the API. Only its SHA-256 is kept; the prefix tells tokens apart."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="api_tokens")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AuditEntry(models.Model):
    """Who did what to what, and when. Only ever added to."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="audit_entries")
    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-at"], name="audit_by_team")]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject}"


class TeamQuota(models.Model):
    """What a team may use, where that is not what Pitwall's settings say for all; null is no
    limit. `storage_used` is what its raw output took when it was last looked at."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="quota")
    own = models.BooleanField(default=False, help_text="The limits below count, not the usual.")
    hosts = models.PositiveIntegerField(null=True, blank=True)
    queued_minutes = models.PositiveIntegerField(null=True, blank=True)
    storage_mib = models.PositiveIntegerField(null=True, blank=True)
    storage_used = models.PositiveBigIntegerField(default=0, help_text="Bytes.")
    storage_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"quota of {self.team}"
