"""Models of requests and their execution: runs, jobs, trials, leases, schedules."""

from enum import StrEnum

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import ApiToken, Team, User
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.core.ids import new_id
from orchestrator.fleet.models import HardwareProfile, Host, HostSnapshot
from orchestrator.runs.states import (
    JOB_ACTIVE,
    BuildState,
    JobState,
    RunState,
    TrialState,
    Validity,
)


def _in_enum(field: str, values: type[StrEnum], name: str) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": [str(value) for value in values]}), name=name
    )


class Trigger(models.TextChoices):
    WEB = "web", "Web"
    API = "api", "API"
    SCHEDULE = "schedule", "Schedule"
    GOLDEN = "golden", "Golden run"
    CALIBRATION = "calibration", "Calibration"
    CONFIRM = "confirm", "Confirmation"
    BISECT = "bisect", "Bisection"


class Priority(models.IntegerChoices):
    LOW = -1, "Low"
    NORMAL = 0, "Normal"
    HIGH = 1, "High"


class Until(models.TextChoices):
    """When a run's cases need no more rounds: after all of them, or as soon as they are decided.

    Screened: a case without any sign of a change after some rounds is stopped early.
    """

    ROUNDS = "rounds", "All rounds"
    DECIDED = "decided", "Until decided"
    SCREENED = "screened", "Screened, then until decided"


class HostRole(models.TextChoices):
    """The role of a host in a job; one host may play all."""

    TARGET = "target", "Target"
    GENERATOR = "generator", "Generator"
    BACKEND = "backend", "Backend"


class Schedule(models.Model):
    """Starts runs automatically: at the times of `cron`, or for each new commit of `branch`.

    The new commit of a branch is the contender; `baseline_ref` defaults to its parent. `seen_sha`
    is the newest commit that was checked, empty before the first check. `placements` are as in a
    request, for several roles, or for any host of a profile or tag. `resolution`: the change (0.02:
    2 %) that its runs must detect; their rounds are computed from it when they start.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="schedules")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="schedules")
    hosts = models.ManyToManyField(Host, related_name="schedules")
    name = models.CharField(max_length=100)
    cron = models.CharField(max_length=100, blank=True, help_text="Five fields, in UTC.")
    branch = models.CharField(max_length=200, blank=True)
    seen_sha = models.CharField(max_length=40, blank=True)
    baseline_ref = models.CharField(max_length=200, blank=True)
    contender_ref = models.CharField(max_length=200, blank=True)
    second_contender_ref = models.CharField(max_length=200, blank=True)
    placements = models.JSONField(default=list, blank=True)
    cases = models.TextField(blank=True, help_text="An expression that chooses cases.")
    pairwise = models.BooleanField(default=False)
    rounds = models.PositiveIntegerField(null=True, blank=True)
    resolution = models.FloatField(null=True, blank=True)
    until = models.CharField(max_length=8, choices=Until.choices, default=Until.ROUNDS)
    budget_s = models.FloatField(null=True, blank=True)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    next_at = models.DateTimeField(db_index=True)
    last_at = models.DateTimeField(null=True, blank=True)
    last_message = models.TextField(blank=True)
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="Until then it waits for a fetch, or after a mistake."
    )
    failures = models.PositiveSmallIntegerField(default=0, db_default=0)
    fetch_requested_at = models.DateTimeField(
        null=True, blank=True, help_text="Since then it waits for a fetch."
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="schedule_name_once"),
            models.CheckConstraint(
                condition=(~Q(cron="") & Q(branch="")) | (Q(cron="") & ~Q(branch="")),
                name="schedule_starts_one_way",
            ),
            models.CheckConstraint(
                condition=Q(resolution=None) | Q(resolution__gt=0),
                name="schedule_resolution_is_a_change",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Run(models.Model):
    """A request to measure one baseline and its contenders on one or more hosts.

    `cases` is the expression that selected the cases, `pairwise` whether their number was reduced.
    `rounds` is the maximum (`until` may end a case earlier). `budget_s`: the machine seconds that
    all hosts together may spend; null: without limit.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="runs")
    definition = models.ForeignKey(Definition, on_delete=models.PROTECT, related_name="runs")
    trigger = models.CharField(max_length=12, choices=Trigger.choices)
    requested_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    schedule = models.ForeignKey(
        Schedule, on_delete=models.SET_NULL, null=True, blank=True, related_name="runs"
    )
    cases = models.TextField(blank=True)
    pairwise = models.BooleanField(default=False)
    rounds = models.PositiveIntegerField()
    until = models.CharField(max_length=8, choices=Until.choices, default=Until.ROUNDS)
    budget_s = models.FloatField(null=True, blank=True)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    seed = models.BigIntegerField()
    state = models.CharField(max_length=10, default=RunState.QUEUED)
    message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-created_at"], name="run_by_team")]
        constraints = [
            _in_enum("state", RunState, "run_state_known"),
            models.CheckConstraint(
                condition=Q(rounds__gte=1) & Q(rounds__lte=MAX_ROUNDS), name="run_rounds_in_range"
            ),
            models.CheckConstraint(condition=Q(until__in=Until.values), name="run_until_known"),
            models.CheckConstraint(
                condition=Q(budget_s=None) | Q(budget_s__gt=0), name="run_budget_is_some_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.definition} {str(self.id)[:8]}"


class Variant(models.Model):
    """One commit of a run; position 0 is the baseline."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="variants")
    commit = models.ForeignKey(Commit, on_delete=models.PROTECT, related_name="variants")
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "commit"], name="variant_commit_once"),
            models.UniqueConstraint(fields=["run", "position"], name="variant_position_once"),
        ]

    def __str__(self) -> str:
        return str(self.commit)


class Job(models.Model):
    """The work of a run for some cases on one placement, executed under one lease.

    `host` plays the target, and its values are stored. It is null until a host of a profile or tag
    is chosen. The one worker that advances the job holds `claim` until `claimed_until`; every write
    of a worker is guarded by it. `poll_at`: the next poll of its lead host. `attempt` counts the
    starts: late reports of an earlier attempt are not stored twice. A queued job is not leased
    before `not_before`.
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
    snapshot = models.ForeignKey(
        HostSnapshot, on_delete=models.PROTECT, null=True, blank=True, related_name="jobs"
    )
    state = models.CharField(max_length=10, default=JobState.QUEUED)
    phase = models.CharField(max_length=60, blank=True)
    message = models.TextField(blank=True)
    attempt = models.PositiveSmallIntegerField(default=1)
    failures = models.PositiveSmallIntegerField(default=0)
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
            _in_enum("state", JobState, "job_state_known"),
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
        return f"{self.role}: {self.wanted}"

    @property
    def wanted(self) -> str:
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


class Trial(models.Model):
    """One measured execution of one case for one variant. Planned with the run, filled in once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # A constraint below begins with each of these two, so they need no separate index.
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="trials", db_index=False)
    variant = models.ForeignKey(
        Variant, on_delete=models.CASCADE, related_name="trials", db_index=False
    )
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="trials")
    round = models.PositiveSmallIntegerField()
    position = models.PositiveIntegerField(help_text="Place in the job's order of execution.")
    expected_s = models.FloatField()
    host = models.ForeignKey(
        Host,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="trials",
        db_index=False,
        help_text="Where the server ran; null until the trial is stored.",
    )
    state = models.CharField(max_length=12, default=TrialState.PLANNED)
    validity = models.CharField(max_length=8, blank=True)
    reasons = models.JSONField(default=list)
    message = models.TextField(blank=True)
    attempt = models.PositiveSmallIntegerField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    provenance = models.JSONField(default=dict)

    class Meta:
        ordering = ["position"]
        # Thousands of rows are inserted at once, without a host: each index costs noticeable time.
        indexes = [
            models.Index(
                fields=["host"], condition=Q(host__isnull=False), name="trial_stored_by_host"
            ),
            models.Index(
                fields=["variant"],
                condition=Q(state="failed") | Q(validity__in=["suspect", "invalid"]),
                name="trial_doubtful_by_variant",
            ),
        ]
        constraints = [
            _in_enum("state", TrialState, "trial_state_known"),
            models.UniqueConstraint(
                fields=["variant", "case", "job", "round"], name="trial_once_a_block"
            ),
            models.UniqueConstraint(fields=["job", "position"], name="trial_position_once"),
            models.CheckConstraint(
                condition=Q(validity__in=["", *[str(value) for value in Validity]]),
                name="trial_validity_known",
            ),
            models.CheckConstraint(
                condition=~Q(state="measured") | ~Q(validity=""),
                name="trial_measured_has_validity",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.case} round {self.round}"


class InterimAnalysis(models.Model):
    """An analysis of a case of a job between two rounds, with `blocks` clean blocks.

    An analysis is never changed. The newest one of a case is its status: decided, futile (stopped
    early, without a sign of a change) or open. `excluded`: blocks that do not count.
    `needed_blocks`: the estimated total for a decision, null if unknown. `p_values` are those of
    its primary metrics against each contender.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="interim_analyses")
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="+")
    blocks = models.PositiveSmallIntegerField()
    excluded = models.PositiveSmallIntegerField()
    at = models.DateTimeField(auto_now_add=True)
    decided = models.BooleanField()
    futile = models.BooleanField()
    verdict = models.CharField(max_length=12)
    needed_blocks = models.PositiveSmallIntegerField(null=True, blank=True)
    p_values = ArrayField(models.FloatField())
    message = models.TextField()

    class Meta:
        ordering = ["job", "case", "blocks"]
        constraints = [
            models.UniqueConstraint(fields=["job", "case", "blocks"], name="interim_analysis_once"),
            models.CheckConstraint(
                condition=~Q(decided=True, futile=True), name="interim_analysis_decided_or_futile"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.case} after {self.blocks} blocks: {self.message}"


class Build(models.Model):
    """A build of a commit on a host for a job, with its output, which is shown while it runs.

    `recipe` is the hash of the recipe; `label` names its cases if others have another recipe.
    `installed` names the installed folder on the host.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="builds")
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+")
    commit = models.ForeignKey(Commit, on_delete=models.PROTECT, related_name="+")
    recipe = models.CharField(max_length=64, blank=True)
    label = models.CharField(max_length=200, blank=True)
    installed = models.CharField(max_length=64, blank=True)
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
            _in_enum("state", BuildState, "build_state_known"),
            models.UniqueConstraint(fields=["job", "host", "commit", "recipe"], name="build_once"),
        ]

    def __str__(self) -> str:
        return f"{self.commit.short_sha} on {self.host}"

    @property
    def agent_id(self) -> str:
        """Return the id of the build for the agent on the host."""
        return f"{self.commit.sha}-{self.recipe}"


class GoldenCheck(models.Model):
    """A reference benchmark that a host runs regularly, to detect its own drift.

    The commit and the definition never change, so any change comes from the host.
    """

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="golden")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="+")
    commit = models.ForeignKey(Commit, on_delete=models.PROTECT, related_name="+")
    every_hours = models.PositiveIntegerField(null=True, blank=True)
    every_jobs = models.PositiveIntegerField(null=True, blank=True)
    tolerance = models.FloatField(default=0.05, help_text="Share of drift that is allowed.")
    created_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    last_run = models.ForeignKey(
        Run, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    last_at = models.DateTimeField(null=True, blank=True)
    judged = models.BooleanField(default=True, help_text="The last run's outcome was looked at.")
    message = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(every_hours__gte=1) | Q(every_jobs__gte=1),
                name="golden_is_due_some_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.benchmark} on {self.host}"


class IdempotencyKey(models.Model):
    """A key that a client sent, and what its request created: a run, or a stored answer."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="idempotency_keys")
    token = models.ForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, related_name="+")
    key = models.CharField(max_length=200)
    request_digest = models.CharField(max_length=64)
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, null=True, related_name="idempotency_keys"
    )
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return self.key
