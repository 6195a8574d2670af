"""Jobs with their placements, leases and builds."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from orchestrator.benchmarks.models import Commit
from orchestrator.core.ids import new_id
from orchestrator.fleet.models import HardwareProfile, Host, HostSnapshot
from orchestrator.runs.models.choices import HostRole, in_enum
from orchestrator.runs.models.runs import Run
from orchestrator.runs.states import JOB_ACTIVE, BuildState, JobState


class Job(models.Model):
    """The work of a run for some cases on one placement, executed under one lease.

    `host` plays the target, and its values are stored. It is null until a host of a profile or tag
    is chosen. The one worker that advances the job holds `claim` until `claimed_until`; every write
    of a worker is guarded by it. `poll_at`: the next poll of its lead host. `attempt` counts the
    starts: late reports of an earlier attempt are not stored twice. A queued job is not leased
    before `not_before`. `pauses`: how often it paused because its hosts were busy. `interruptions`:
    how often its round was stopped from outside, which costs no attempt. `shared_hosts`: a host was
    shared with other work when the job got it. `revision` grows with each change that the API shows
    (`version_keys`).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="jobs")
    host = models.ForeignKey(
        Host, on_delete=models.PROTECT, null=True, blank=True, related_name="jobs"
    )
    expected_s = models.FloatField(default=0.0)
    not_before = models.DateTimeField(null=True, blank=True)
    tls = models.BinaryField(
        null=True, editable=False, help_text="Sealed certificates of an active job that needs some."
    )
    sealed_secret = models.BinaryField(
        null=True, editable=False, help_text="By it the hosts of an active job know each other."
    )
    secret_versions = models.JSONField(
        default=dict, blank=True, help_text="Name → version of the project's secrets of its round."
    )
    snapshot = models.ForeignKey(
        HostSnapshot, on_delete=models.PROTECT, null=True, blank=True, related_name="jobs"
    )
    state = models.CharField(max_length=16, default=JobState.QUEUED)
    phase = models.CharField(max_length=60, blank=True)
    message = models.TextField(blank=True)
    revision = models.PositiveBigIntegerField(default=0)
    attempt = models.PositiveSmallIntegerField(default=1)
    failures = models.PositiveSmallIntegerField(default=0)
    pauses = models.PositiveSmallIntegerField(default=0)
    interruptions = models.PositiveSmallIntegerField(default=0)
    shared_hosts = models.BooleanField(default=False, db_default=False)
    round = models.PositiveSmallIntegerField(default=0)
    followers_started = models.BooleanField(default=False)
    step_started = models.BooleanField(default=False)
    journal_offset = models.PositiveBigIntegerField(default=0)
    current_trial = models.UUIDField(null=True, blank=True)
    claim = models.UUIDField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    poll_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["poll_at"],
                condition=Q(state__in=sorted(str(state) for state in JOB_ACTIVE)),
                name="job_active_by_poll",
            ),
            models.Index(
                fields=["created_at"], condition=Q(state="queued"), name="job_queued_by_age"
            ),
        ]
        constraints = [
            in_enum("state", JobState, "job_state_known"),
            models.CheckConstraint(
                condition=~Q(state__in=sorted(str(state) for state in JOB_ACTIVE))
                | Q(host__isnull=False),
                name="job_active_has_host",
            ),
            models.CheckConstraint(
                condition=Q(tls__isnull=True)
                | Q(state__in=sorted(str(state) for state in JOB_ACTIVE)),
                name="job_tls_while_active",
            ),
            models.CheckConstraint(
                condition=Q(sealed_secret__isnull=True)
                | Q(state__in=sorted(str(state) for state in JOB_ACTIVE)),
                name="job_secret_while_active",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run} on {self.host}"


class Placement(models.Model):
    """One role of a job: the requested host, profile or tag, and the leased host.

    Exactly one of a host, a profile and a tag is requested. `avoid` are hosts that failed this job.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="placements")
    role = models.CharField(max_length=9, choices=HostRole.choices)
    wanted_host = models.ForeignKey(
        Host, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    wanted_profile = models.ForeignKey(
        HardwareProfile, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    wanted_tag = models.CharField(max_length=40, blank=True)
    host = models.ForeignKey(
        Host, on_delete=models.PROTECT, null=True, blank=True, related_name="placements"
    )
    avoid = ArrayField(models.UUIDField(), default=list, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "role"], name="placement_role_once"),
            models.CheckConstraint(
                condition=Q(wanted_host__isnull=False, wanted_profile=None, wanted_tag="")
                | (Q(wanted_host=None, wanted_profile__isnull=False, wanted_tag=""))
                | (Q(wanted_host=None, wanted_profile=None) & ~Q(wanted_tag="")),
                name="placement_wants_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role}: {self.host_selector}"

    @property
    def host_selector(self) -> str:
        """Return the text of a request: `host:a`, `profile:t490s`, `tag:fast`."""
        if self.wanted_host is not None:
            return f"host:{self.wanted_host.name}"
        if self.wanted_profile is not None:
            return f"profile:{self.wanted_profile.slug}"
        return f"tag:{self.wanted_tag}"

    def candidates(self) -> models.QuerySet[Host]:
        """Return the hosts that could play this role, in any state."""
        if self.wanted_host_id is not None:
            return Host.objects.filter(pk=self.wanted_host_id)
        hosts = Host.objects.filter(team=self.job.run.team_id)
        if self.wanted_profile_id is not None:
            return hosts.filter(profile=self.wanted_profile_id)
        return hosts.filter(tags__contains=[self.wanted_tag])


class HostLease(models.Model):
    """The exclusive use of a host by a job: one row per host, by constraint."""

    host = models.OneToOneField(Host, on_delete=models.PROTECT, related_name="lease")
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="leases")
    taken_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.host} for {self.job_id}"


class Build(models.Model):
    """A build of a commit on a host for a job, with its output, which is shown while it runs.

    `recipe` is the hash of the recipe; `label` names its cases if others have another recipe.
    `installed` names the installed folder on the host. `digest` is that of the built files,
    `source_digest` that of the source, the steps and the install; empty if unknown.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="builds")
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+")
    commit = models.ForeignKey(Commit, on_delete=models.PROTECT, related_name="+")
    recipe = models.CharField(max_length=64, blank=True)
    label = models.CharField(max_length=200, blank=True)
    installed = models.CharField(max_length=64, blank=True)
    source_digest = models.CharField(max_length=64, blank=True)
    digest = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=8, default=BuildState.BUILDING)
    cached = models.BooleanField(default=False)
    seconds = models.FloatField(null=True, blank=True)
    message = models.TextField(blank=True)
    log = models.TextField(blank=True)
    log_offset = models.PositiveBigIntegerField(default=0)
    started_at = models.DateTimeField()

    class Meta:
        ordering = ["started_at"]
        constraints = [
            in_enum("state", BuildState, "build_state_known"),
            models.UniqueConstraint(fields=["job", "host", "commit", "recipe"], name="build_once"),
        ]

    def __str__(self) -> str:
        return f"{self.commit.short_sha} on {self.host}"

    @property
    def agent_id(self) -> str:
        """Return the id of the build for the agent on the host."""
        return f"{self.commit.sha}-{self.recipe}"
