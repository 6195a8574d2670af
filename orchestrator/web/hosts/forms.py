"""Forms of hosts: SSH settings, profile, use, golden runs and calibration."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms

from orchestrator.accounts.members import Member
from orchestrator.fleet.host_variables import format_variables, parse_variables
from orchestrator.fleet.login_certificates import MOST_CHARACTERS
from orchestrator.fleet.models import HardwareProfile, Host
from orchestrator.fleet.selectors import load_credentials, load_profiles
from orchestrator.fleet.ssh_settings import check_short_name
from orchestrator.fleet.start_commands import format_command, list_helpers, parse_command
from orchestrator.fleet.tuning import KNOBS
from orchestrator.runs.calibration import DEFAULT_PAIRS, MAX_PAIRS, MIN_PAIRS, NewCalibration
from orchestrator.runs.golden import NewGolden
from orchestrator.runs.models import GoldenCheck
from orchestrator.web.forms import (
    BenchmarkChoiceForm,
    ShortNameField,
    TeamForm,
    build_benchmark_key,
)

#: Measured code should not run as root.
LOGIN_HELP = "The login user. Use root only if measured code runs as another user."
_GIB = 2**30
#: Fields of the form of a profile that are fields of the profile.
_OF_PROFILE = (
    "cpu_model", "cores", "threads", "base_clock_mhz", "boost_clock_mhz", "os", "price_per_hour",
)  # fmt: skip


def jump_hosts_field() -> forms.CharField:
    return forms.CharField(
        required=False,
        label="Jump hosts",
        max_length=8000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "code"}),
        help_text="One per line, in order, each with its host key: user@bastion.example:22 "
        "ssh-ed25519 AAAA… The same key logs in to them. Empty: none.",
    )


class SshForm(TeamForm):
    """The SSH settings of a host."""

    renamed = {"credential_id": "credential"}

    address = forms.CharField(max_length=253, help_text="Host name or IP address.")
    port = forms.IntegerField(min_value=1, max_value=65535)
    login = forms.CharField(max_length=64, label="User", help_text=LOGIN_HELP)
    credential = forms.ChoiceField(label="Key to log in with")
    work_dir = forms.CharField(
        max_length=255, label="Work directory", help_text="Relative to the user's home."
    )
    python = forms.CharField(
        max_length=255, label="Python command", help_text="Python 3.9 or newer on that host."
    )
    jump_hosts = jump_hosts_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        keys = [(str(k.pk), f"{k.name} · {k.fingerprint}") for k in load_credentials(self.member)]
        self.fields["credential"].choices = keys  # type: ignore[attr-defined]

    def build_arguments(self) -> dict[str, Any]:
        """Return the arguments of `change_connection`."""
        data = dict(self.cleaned_data)
        credential_id = UUID(data.pop("credential"))
        jump_hosts = data.pop("jump_hosts").splitlines()
        return {**data, "credential_id": credential_id, "jump_hosts": jump_hosts}


class CertificateForm(TeamForm):
    """The certificate of the key of a host."""

    certificate = forms.CharField(
        required=False,
        max_length=MOST_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 4, "class": "code", "spellcheck": "false"}),
        help_text="The content of the file with -cert.pub: ssh-ed25519-cert-v01@openssh.com AAAA… "
        "Empty: none.",
    )


def build_initial_ssh(host: Host) -> dict[str, Any]:
    """Return the present values of the fields of ConnectionForm."""
    same = {
        name: getattr(host, name) for name in ("address", "port", "login", "work_dir", "python")
    }
    return {
        **same,
        "credential": str(host.credential_id),
        "jump_hosts": "\n".join(host.jump_hosts),
    }


def run_as_field() -> forms.CharField:
    return forms.CharField(
        max_length=32,
        required=False,
        label="Run measured code as",
        help_text="A user only for this purpose; Pitwall then logs in as root. "
        "Empty: the login user.",
    )


class SecretTextarea(forms.Textarea):
    """Accepts a secret and never sends it back, even if the form has an error."""

    def format_value(self, value: Any) -> None:
        return None


class HostForm(TeamForm):
    renamed = {"credential_id": "credential"}

    KEY_SOURCES = (
        ("generate", "Generate a new key pair"),
        ("stored", "Use a stored key"),
        ("paste", "Paste a private key"),
    )
    name = ShortNameField(
        check=check_short_name,
        max_length=60,
        help_text="Lower-case letters, digits and dashes.",
    )
    profile = forms.ChoiceField(
        required=False,
        label="Hardware profile",
        help_text="The kind of machine. By default it is created from the CPU, the memory and the "
        "system that the host reports; you can rename it.",
    )
    address = forms.CharField(max_length=253, help_text="Host name or IP address.")
    port = forms.IntegerField(min_value=1, max_value=65535, initial=22)
    login = forms.CharField(max_length=64, label="User", help_text=LOGIN_HELP)
    key_source = forms.ChoiceField(
        choices=KEY_SOURCES,
        widget=forms.RadioSelect,
        initial="generate",
        label="Key to log in with",
    )
    credential = forms.ChoiceField(required=False, label="Stored key")
    private_key = forms.CharField(
        required=False,
        strip=False,
        widget=SecretTextarea(attrs={"rows": 5, "spellcheck": "false", "autocomplete": "off"}),
        help_text="OpenSSH or PEM, without passphrase. Stored encrypted and never shown again.",
    )
    work_dir = forms.CharField(
        max_length=255,
        required=False,
        initial=".pitwall",
        label="Work directory",
        help_text="Folder for the agent, builds and results of jobs; relative to the user's home.",
    )
    python = forms.CharField(
        max_length=255,
        required=False,
        initial="python3",
        label="Python command",
        help_text="Python 3.9 or newer on that host.",
    )
    jump_hosts = jump_hosts_field()
    run_as = run_as_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        profiles = [(each.slug, each.name) for each in load_profiles(self.member)]
        keys = [(str(k.pk), f"{k.name} · {k.fingerprint}") for k in load_credentials(self.member)]
        self.fields["profile"].choices = [("", "Detect"), *profiles]  # type: ignore[attr-defined]
        self.fields["credential"].choices = [("", "—"), *keys]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        wanted = {"stored": "credential", "paste": "private_key"}.get(data.get("key_source", ""))
        if wanted and not data.get(wanted):
            self.add_error(wanted, "Required for the selected option.")
        return data


class ProfileForm(TeamForm):
    slug = ShortNameField(
        check=check_short_name,
        max_length=60,
        label="Short name",
        help_text="Such as thinkpad-t490s.",
    )
    name = forms.CharField(max_length=100)
    cpu_model = forms.CharField(max_length=120, required=False, label="CPU model")
    cores = forms.IntegerField(required=False, min_value=1, max_value=4096)
    threads = forms.IntegerField(required=False, min_value=1, max_value=8192)
    base_clock_mhz = forms.IntegerField(
        required=False, min_value=1, max_value=100_000, label="Base clock in MHz"
    )
    boost_clock_mhz = forms.IntegerField(
        required=False, min_value=1, max_value=100_000, label="Boost clock in MHz"
    )
    memory_gib = forms.DecimalField(
        required=False, min_value=0, max_value=100_000, label="Memory in GiB"
    )
    os = forms.CharField(max_length=100, required=False, label="Operating system")
    price_per_hour = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=9,
        decimal_places=4,
        label="Price per hour",
        help_text="In the same currency for all profiles, such as 0.35.",
    )

    def __init__(self, member: Member, data: Any, *, chosen: HardwareProfile | None) -> None:
        """`chosen`: the profile to change; its slug cannot be changed. None: a new profile."""
        super().__init__(member, data, initial=_build_initial_profile(chosen) if chosen else None)
        self.chosen = chosen
        self.fields["slug"].disabled = chosen is not None

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if self.chosen is None and load_profiles(self.member).filter(slug=slug).exists():
            raise forms.ValidationError(
                f"There is already a profile {slug}: choose another short name, or change it."
            )
        return slug

    def build_facts(self) -> dict[str, Any]:
        """Return the arguments of `save_profile`; an unchanged size of the memory stays exact."""
        same = {name: self.cleaned_data[name] for name in ("slug", "name", *_OF_PROFILE)}
        if self.chosen is not None and "memory_gib" not in self.changed_data:
            return {**same, "memory_bytes": self.chosen.memory_bytes}
        gib = self.cleaned_data["memory_gib"]
        return {**same, "memory_bytes": None if gib is None else int(gib * _GIB)}


def _build_initial_profile(profile: HardwareProfile) -> dict[str, Any]:
    same = {name: getattr(profile, name) for name in ("slug", "name", *_OF_PROFILE)}
    size = profile.memory_bytes
    return {**same, "memory_gib": None if size is None else round(Decimal(size) / _GIB, 2)}


class HostSettingsForm(TeamForm):
    """How a host is used; one field for each knob, empty to leave it unchanged."""

    renamed = {
        "disk_limit_bytes": "disk_limit_gib",
        **{f"tuning.{name}": f"tuning_{name}" for name in KNOBS},
    }

    tags = forms.CharField(
        max_length=1500,
        required=False,
        help_text="Separated by commas, such as rack-2, quiet. Runs request them as tag:quiet.",
    )
    open_hours = forms.CharField(
        max_length=500,
        required=False,
        help_text="When jobs may run: mon-fri 20:00-07:00; sat-sun. Empty: always.",
    )
    timezone = forms.CharField(
        max_length=60,
        label="Time zone",
        help_text="Time zone of the opening hours, such as Europe/Vienna.",
    )
    data_address = forms.CharField(
        max_length=253,
        required=False,
        label="Address for other hosts",
        help_text="The address that other hosts of a job use. Empty: the SSH address.",
    )
    disk_limit_gib = forms.DecimalField(
        min_value=Decimal("0.1"),
        max_value=1_000_000,
        label="Disk limit in GiB",
        help_text="Above this limit, the least recently used files are removed.",
    )

    env = forms.CharField(
        required=False,
        label="Environment variables",
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "code"}),
        help_text="Of all measured processes, one NAME=value per line, such as a proxy. "
        "The team can see them: no secrets.",
    )
    run_as = run_as_field()
    is_shared = forms.BooleanField(
        required=False,
        label="Shared with other work",
        help_text="Trials that other processes disturb count as suspect, and do not wait for a "
        "quiet host. Intervals become wider.",
    )

    mac_address = forms.CharField(
        max_length=17,
        required=False,
        label="MAC address",
        help_text="Wakes the machine (Wake-on-LAN) when jobs wait for it, such as "
        "00:11:22:33:44:55. Empty: never.",
    )
    start_command = forms.CharField(
        max_length=1000,
        required=False,
        label="Start command",
        help_text="Starts the machine when jobs wait for it, such as virsh start bench-1. "
        "It may run again. Empty: none.",
    )
    start_host = forms.ChoiceField(
        required=False,
        label="Host that runs the start command",
        help_text="Another host of this team over SSH, such as a hypervisor.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [(host.name, host.name) for host in list_helpers(self.member)]
        self._field("start_host").choices = [("", "—"), *names]
        for name, knob in KNOBS.items():
            self.fields[f"tuning_{name}"] = (
                forms.ChoiceField(
                    required=False,
                    label=knob.title,
                    choices=[("", "Keep"), *((word, word) for word in knob.words)],
                )
                if knob.words
                else forms.CharField(
                    required=False, label=knob.title, help_text=f"Empty, or {knob.expected}."
                )
            )

    @property
    def use_fields(self) -> list[forms.BoundField]:
        return [field for field in self if not field.name.startswith("tuning_")]

    @property
    def tuning_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name.startswith("tuning_")]

    def build_arguments(self) -> dict[str, Any]:
        """Return the arguments of `set_host_settings`."""
        data = self.cleaned_data
        return {
            "tags": data["tags"].split(","),
            "open_hours": data["open_hours"],
            "timezone": data["timezone"],
            "data_address": data["data_address"],
            "disk_limit_bytes": int(data["disk_limit_gib"] * _GIB),
            "tuning": {name: data[f"tuning_{name}"] for name in KNOBS},
            "env": parse_variables(data["env"]),
            "run_as": data["run_as"],
            "is_shared": data["is_shared"],
            "mac_address": data["mac_address"],
            "start_command": parse_command(data["start_command"]),
            "start_host": data["start_host"],
        }


class ReservationForm(TeamForm):
    """How long no new job starts on a host, and why."""

    DURATIONS_S = (
        (1800, "30 minutes"),
        (3600, "1 hour"),
        (7200, "2 hours"),
        (14_400, "4 hours"),
        (28_800, "8 hours"),
        (86_400, "1 day"),
        (259_200, "3 days"),
        (604_800, "7 days"),
    )
    duration_s = forms.TypedChoiceField(
        label="Reserve for", choices=DURATIONS_S, coerce=int, initial=7200
    )
    reason = forms.CharField(
        required=False, max_length=500, label="Note", help_text="Visible to the team."
    )


class GoldenForm(BenchmarkChoiceForm):
    renamed = {"tolerance": "tolerance_percent"}

    benchmark = forms.ChoiceField(help_text="A short benchmark that loads the whole machine.")
    commit = forms.CharField(
        max_length=200, help_text="Branch, tag or hash; a branch means its current commit."
    )
    every_hours = forms.IntegerField(
        required=False, min_value=1, label="Every n hours", help_text="Optional."
    )
    every_jobs = forms.IntegerField(
        required=False,
        min_value=1,
        label="Every n jobs",
        help_text="After this number of other finished jobs.",
    )
    tolerance_percent = forms.DecimalField(
        min_value=Decimal("0.1"),
        max_value=100,
        initial=5,
        label="Tolerance in %",
        help_text="Tolerated drift. If the noise of the host is larger, its noise is tolerated.",
    )

    def build_golden(self) -> NewGolden:
        data = self.cleaned_data
        project, benchmark = self.split_benchmark()
        return NewGolden(
            benchmark=benchmark,
            project=project or None,
            commit=data["commit"],
            every_hours=data["every_hours"],
            every_jobs=data["every_jobs"],
            tolerance=float(data["tolerance_percent"] / 100),
        )


class CalibrationForm(BenchmarkChoiceForm):
    benchmark = forms.ChoiceField(help_text="The benchmark that you plan to compare commits with.")
    commit = forms.CharField(
        max_length=200,
        required=False,
        help_text="Branch, tag or hash. Empty: that of the golden run, or the default branch.",
    )
    pairs = forms.IntegerField(
        min_value=MIN_PAIRS,
        max_value=MAX_PAIRS,
        initial=DEFAULT_PAIRS,
        help_text="Two rounds each. With ten pairs, the upper bound of the noise is about 1.8 "
        "times the estimate.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The form of the golden run on the same page has fields of the same names.
        super().__init__(*args, auto_id="id_calibration_%s", **kwargs)

    def build_calibration(self) -> NewCalibration:
        data = self.cleaned_data
        project, benchmark = self.split_benchmark()
        return NewCalibration(
            benchmark=benchmark,
            project=project or None,
            commit=data["commit"],
            pairs=data["pairs"],
        )


def build_initial_settings(host: Host) -> dict[str, Any]:
    """Return the present values of the fields of HostSettingsForm."""
    gib = Decimal(host.disk_limit_bytes) / _GIB
    return {
        "tags": ", ".join(host.tags),
        "open_hours": host.open_hours,
        "timezone": host.timezone,
        "data_address": host.data_address,
        "disk_limit_gib": f"{gib:.2f}".rstrip("0").rstrip("."),
        **{f"tuning_{name}": host.tuning.get(name, "") for name in KNOBS},
        "env": format_variables(host.env),
        "run_as": host.run_as,
        "is_shared": host.is_shared,
        "mac_address": host.mac_address,
        "start_command": format_command(host.start_command),
        "start_host": host.start_host.name if host.start_host else "",
    }


def build_initial_golden(check: GoldenCheck | None) -> dict[str, Any]:
    """Return the present values of the fields of GoldenForm; none without a golden run."""
    if check is None:
        return {}
    return {
        "benchmark": build_benchmark_key(check.benchmark),
        "commit": check.commit.short_sha,
        "every_hours": check.every_hours,
        "every_jobs": check.every_jobs,
        "tolerance_percent": f"{check.tolerance * 100:g}",
    }


def build_initial_calibration(check: GoldenCheck | None) -> dict[str, Any]:
    """Return initial values of CalibrationForm: those of the host's golden run, if it has one."""
    if check is None:
        return {}
    return {"benchmark": build_benchmark_key(check.benchmark), "commit": check.commit.short_sha}
