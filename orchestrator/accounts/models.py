"""Users, the teams that own all data, and API tokens."""

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from orchestrator.core.ids import new_id


class User(AbstractUser):
    """A person who logs in. Their permissions follow from their memberships.

    `known_memberships` are set for the user of a session, who is read together with them.
    """

    known_memberships: "tuple[Membership, ...] | None" = None


class Team(models.Model):
    slug = models.SlugField(max_length=50, unique=True)
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """Each role includes the permissions of those before it."""

    VIEWER = "viewer", "Viewer"
    MEMBER = "member", "Member"
    MAINTAINER = "maintainer", "Maintainer"
    OWNER = "owner", "Owner"


class Scope(models.TextChoices):
    """The permitted use of a token, within the role of its creator."""

    READ = "read", "Read: look at runs, results and hosts"
    RUN = "run", "Run: start, confirm and cancel runs"
    RESULTS = "results", "Results: send what was measured elsewhere"
    MANAGE = "manage", "Manage: change benchmarks, hosts, rules and the team"


def list_scopes() -> list[str]:
    return list(Scope.values)


class Membership(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="membership_once"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class Invitation(models.Model):
    """An invitation of one person to a team. Only the SHA-256 of the secret in its link is
    stored."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Role.choices)
    email = models.EmailField(blank=True)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    used_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_role_known"),
            models.CheckConstraint(
                condition=Q(used_at=None) | Q(withdrawn_at=None), name="invitation_ends_once"
            ),
        ]

    def __str__(self) -> str:
        return self.email or f"link of {self.created_at:%Y-%m-%d}"


class ApiToken(models.Model):
    """A bearer token of the API. Only its SHA-256 is stored; the prefix identifies it for users.

    `project_slug` is set for the token of a request, which is read together with it.
    """

    project_slug: str | None = None

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="api_tokens")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope.choices), default=list_scopes)
    #: Limits the token to one project; None for the whole team.
    project = models.ForeignKey(
        "benchmarks.Project", on_delete=models.CASCADE, null=True, related_name="api_tokens"
    )
    #: The token that created it: it expires no later, and is revoked with it.
    parent = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(scopes__contained_by=Scope.values) & Q(scopes__len__gt=0),
                name="token_scopes_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def has_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()


class AuditEntry(models.Model):
    """An action, its actor, subject and time. Insert-only: the database refuses all else.

    The names remain when the user or the token is removed.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="audit_entries")
    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    actor_name = models.CharField(max_length=150, blank=True)
    token = models.CharField(max_length=120, blank=True)
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-at"], name="audit_by_team")]

    def __str__(self) -> str:
        return f"{self.actor_name or 'Pitwall'} {self.action} {self.subject}"


class TeamQuota(models.Model):
    """The quotas of a team that differ from Pitwall's settings; null is no limit.

    `storage_used` is the size of its raw output and imports at the last count, and of later
    imports.
    """

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="quota")
    own = models.BooleanField(default=False, help_text="The quotas below apply, not the defaults.")
    hosts = models.PositiveIntegerField(null=True, blank=True)
    queued_minutes = models.PositiveIntegerField(null=True, blank=True)
    storage_mib = models.PositiveIntegerField(null=True, blank=True)
    mirrors_mib = models.PositiveIntegerField(null=True, blank=True)
    storage_used = models.PositiveBigIntegerField(default=0, help_text="Bytes.")
    storage_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"quota of {self.team}"
