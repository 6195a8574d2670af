"""Hosts: their hardware profiles, their addresses and keys, and the facts that they report."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import Team
from orchestrator.core.ids import new_id
from orchestrator.fleet.open_hours import OpenHours, parse


class HardwareProfile(models.Model):
    """A kind of machine. Unknown facts are null."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="profiles")
    slug = models.SlugField(max_length=60)
    name = models.CharField(max_length=100)
    cpu_model = models.CharField(max_length=120, blank=True)
    cores = models.PositiveIntegerField(null=True, blank=True)
    threads = models.PositiveIntegerField(null=True, blank=True)
    base_clock_mhz = models.PositiveIntegerField(null=True, blank=True)
    boost_clock_mhz = models.PositiveIntegerField(null=True, blank=True)
    memory_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    os = models.CharField(max_length=100, blank=True)
    price_per_hour = models.DecimalField(max_digits=9, decimal_places=4, null=True, blank=True)
    notes = models.TextField(blank=True)
    is_pending = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Created together with a host, whose first facts name it.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "slug"], name="profile_slug_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Credential(models.Model):
    """A private key to log in with; encrypted at rest with the key of the installation."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="credentials")
    name = models.CharField(max_length=100)
    sealed_private_key = models.BinaryField()
    public_key = models.TextField()
    fingerprint = models.CharField(max_length=80)
    certificate = models.TextField(
        blank=True, default="", help_text="The key signed by an authority; empty: none."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="credential_name_once")
        ]

    def __str__(self) -> str:
        return self.name


class HostState(models.TextChoices):
    UNCONFIRMED = "unconfirmed", "Being set up"
    READY = "ready", "Ready"
    UNREACHABLE = "unreachable", "Unreachable"
    MAINTENANCE = "maintenance", "In maintenance"
    QUARANTINED = "quarantined", "Quarantined"
    RETIRED = "retired", "Retired"
    EXTERNAL = "external", "Measured elsewhere"


#: No run can ask for a host in one of these states: it is not in use yet, or no longer.
UNUSABLE = frozenset({HostState.UNCONFIRMED, HostState.RETIRED, HostState.EXTERNAL})
#: A host in one of these states gets no job; running jobs may end.
HELD = UNUSABLE | {HostState.MAINTENANCE, HostState.QUARANTINED}


class HostTransport(models.TextChoices):
    SSH = "ssh", "SSH"
    LOCAL = "local", "This machine"
    EXTERNAL = "external", "Nothing: its results are sent to us"


class Host(models.Model):
    """One machine. An SSH host is used only after its key is confirmed.

    An external host is never used: another system measures there and sends the results.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="hosts")
    profile = models.ForeignKey(HardwareProfile, on_delete=models.PROTECT, related_name="hosts")
    name = models.SlugField(max_length=60)
    transport = models.CharField(
        max_length=8, choices=HostTransport.choices, default=HostTransport.SSH
    )
    address = models.CharField(max_length=253, blank=True)
    port = models.PositiveIntegerField(default=22)
    login = models.CharField(max_length=64, blank=True)
    credential = models.ForeignKey(
        Credential, on_delete=models.PROTECT, null=True, blank=True, related_name="hosts"
    )
    host_key = models.TextField(blank=True, help_text="As `ssh-ed25519 AAAA…`; pinned.")
    work_dir = models.CharField(max_length=255, default=".pitwall")
    python = models.CharField(max_length=255, default="python3")
    data_address = models.CharField(
        max_length=253,
        blank=True,
        help_text="Where the other hosts of a job reach it; empty: the address above.",
    )
    tags = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    open_hours = models.CharField(
        max_length=500,
        blank=True,
        help_text="When jobs may run, such as `mon-fri 20:00-07:00; sat-sun`; empty: always.",
    )
    timezone = models.CharField(max_length=60, default="UTC")
    tuning = models.JSONField(default=dict, blank=True)
    run_as = models.CharField(
        max_length=32,
        blank=True,
        help_text="The user that measured code runs as; empty: the user that Pitwall logs in as.",
    )
    disk_limit_bytes = models.PositiveBigIntegerField(default=10 * 2**30)
    is_shared = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Other work runs on it, so trials that other processes disturb count as suspect.",
    )
    state = models.CharField(
        max_length=12, choices=HostState.choices, default=HostState.UNCONFIRMED
    )
    message = models.TextField(blank=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    unreachable_since = models.DateTimeField(
        null=True, blank=True, help_text="When it stopped to answer; null while it answers."
    )
    probe_at = models.DateTimeField(
        null=True, blank=True, help_text="The next probe of an unreachable host; null: at once."
    )
    failed_probes = models.PositiveSmallIntegerField(default=0, db_default=0)
    mac_address = models.CharField(
        max_length=17,
        blank=True,
        help_text="Wakes the machine over the network, as `00:11:22:33:44:55`; empty: never.",
    )
    start_command = models.JSONField(
        default=list, blank=True, help_text="Arguments of the command that starts it; empty: none."
    )
    start_host = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The host of the team that runs the command.",
    )
    start_problem = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="Why the command failed the last time since the host is absent.",
    )
    jump_hosts = models.JSONField(
        default=list, blank=True, help_text="As `user@host:port ssh-ed25519 AAAA…`, in order."
    )
    env = models.JSONField(
        default=dict, blank=True, help_text="Variables of all measured processes on it."
    )
    machine_id = models.CharField(max_length=64, blank=True, default="")
    boot_id = models.CharField(max_length=64, blank=True, default="")
    installation_id = models.CharField(
        max_length=64, blank=True, default="", help_text="The id of its work directory."
    )
    reserved_until = models.DateTimeField(
        null=True, blank=True, help_text="No new job starts before; past or null: not reserved."
    )
    reserved_by = models.CharField(max_length=200, blank=True, default="")
    reserved_for = models.CharField(max_length=500, blank=True, default="")
    reservation_seen_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the host reported the reservation; null if it was made in Pitwall.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="host_name_once"),
            models.CheckConstraint(
                condition=Q(state__in=HostState.values), name="host_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(transport=HostTransport.SSH, state=HostState.READY)
                | (~Q(host_key="") & Q(credential__isnull=False)),
                name="host_ready_needs_pinned_key",
            ),
            models.CheckConstraint(
                condition=Q(transport=HostTransport.EXTERNAL, state=HostState.EXTERNAL)
                | (~Q(transport=HostTransport.EXTERNAL) & ~Q(state=HostState.EXTERNAL)),
                name="host_external_is_never_used",
            ),
            models.CheckConstraint(condition=Q(port__range=(1, 65535)), name="host_port_valid"),
        ]
        indexes = [GinIndex(fields=["tags"], name="host_by_tag")]

    def __str__(self) -> str:
        return self.name

    @property
    def hours(self) -> OpenHours:
        return parse(self.open_hours)


class HostSnapshot(models.Model):
    """The facts that a host reported before a job; insert-only."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="snapshots")
    facts = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    taken_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["host", "-taken_at"], name="snapshot_by_host")]

    def __str__(self) -> str:
        return f"{self.host} at {self.taken_at:%Y-%m-%d %H:%M}"


class HostChange(models.Model):
    """A snapshot with other identifying facts than the one before: a new epoch of the host.

    Values from before and after it are those of different machines. Insert-only.
    """

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="changes")
    snapshot = models.OneToOneField(HostSnapshot, on_delete=models.CASCADE, related_name="change")
    changed = models.JSONField(help_text="Fact → [before, after].")
    at = models.DateTimeField(help_text="When the snapshot was taken.")

    class Meta:
        ordering = ["at"]
        indexes = [models.Index(fields=["host", "at"], name="host_change_by_host")]

    def __str__(self) -> str:
        return f"{', '.join(self.changed)} of {self.host}"


class CheckStep(models.TextChoices):
    """The steps to check a host before it is used; each depends on the ones before."""

    REACH = "reach", "Address and port"
    KEY = "key", "Host key"
    LOGIN = "login", "Login and work directory"
    PYTHON = "python", "Python"
    AGENT = "agent", "Agent"
    LIMITS = "limits", "Limits and rights"
    TOOLS = "tools", "Load tools"
    CLOCK = "clock", "Clock"
    QUIET = "quiet", "Idle check"


class CheckOutcome(models.TextChoices):
    PASSED = "passed", "passed"
    WARNING = "warning", "warning"
    ACTION_REQUIRED = "action_required", "waiting for you"
    FAILED = "failed", "failed"


class HostCheck(models.Model):
    """The result of the last try of a step; the next try replaces it."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="checks")
    step = models.CharField(max_length=8, choices=CheckStep.choices)
    outcome = models.CharField(max_length=15, choices=CheckOutcome.choices)
    message = models.TextField(help_text="What was found, and at which address.")
    remedies = models.JSONField(default=list, help_text="[what to do, the command for it], …")
    shown_key = models.TextField(blank=True, help_text="The host key that waits for an answer.")
    other_host = models.ForeignKey(
        Host,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="The host that is the same machine.",
    )
    seconds = models.FloatField()
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["host", "step"], name="host_check_once"),
            models.CheckConstraint(
                condition=Q(step__in=CheckStep.values) & Q(outcome__in=CheckOutcome.values),
                name="host_check_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_step_display()} of {self.host}: {self.outcome}"


class CheckRequest(models.Model):
    """A request to check a host; it lasts until the checks have ended. A worker has the `claim`.

    `idle_only`: only the idle check is wanted, again.
    """

    host = models.OneToOneField(
        Host, on_delete=models.CASCADE, primary_key=True, related_name="check_request"
    )
    requested_at = models.DateTimeField(auto_now_add=True)
    idle_only = models.BooleanField(default=False, db_default=False)
    tries = models.PositiveSmallIntegerField(default=0)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"checks of {self.host_id}"
