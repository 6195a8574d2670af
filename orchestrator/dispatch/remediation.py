"""Fixes for failed steps of a check-up: text, and the command or line for it."""

from collections.abc import Mapping
from typing import Any

from cli.pitwall.setup_script import DEFAULT_ACCOUNT, build_setup_script
from orchestrator.core.errors import HostError, HostKeyMismatchError, LoginRefusedError
from orchestrator.dispatch.agent import SharedFolderError
from orchestrator.fleet.checks import Remedy
from orchestrator.fleet.models import CheckStep, Credential, Host, HostTransport
from orchestrator.transport.address import HostKey
from orchestrator.transport.networks import ForbiddenHostError
from orchestrator.transport.reach import (
    NoAnswerError,
    NoSuchNameError,
    NotSshError,
    PortRefusedError,
)

_CHANGE_SETTINGS = "If the address or port is different, change the SSH settings below."
SYNCHRONISE_CLOCKS: tuple[Remedy, ...] = (
    ("Synchronise the clock of the host (Debian, Ubuntu):", "sudo apt install chrony"),
    (
        "On Fedora and similar systems:",
        "sudo dnf install chrony && sudo systemctl enable --now chronyd",
    ),
    ("Show the offset of the clock:", "chronyc tracking"),
)
OTHER_WORK_DIR: tuple[Remedy, ...] = (
    ("Choose a folder on a local disk as the work directory, below:", "/var/tmp/pitwall"),
)
EXECUTABLE_WORK_DIR: tuple[Remedy, ...] = (
    (
        "Choose a folder on another file system as the work directory, below; this shows them:",
        "findmnt --list --output TARGET,FSTYPE,OPTIONS",
    ),
)
NEW_MACHINE_ID: tuple[Remedy, ...] = (
    (
        "If it is another machine with a copy of that one's disk, give it its own id:",
        "sudo rm /etc/machine-id && sudo systemd-machine-id-setup",
    ),
)
_INSTALL_PYTHON: tuple[Remedy, ...] = (
    ("On the host (Debian, Ubuntu):", "sudo apt install python3"),
    ("On Fedora and similar systems:", "sudo dnf install python3"),
    ("On macOS:", "xcode-select --install"),
    ("If Python has another name or path, change the SSH settings below.", ""),
)


def find_remedies(host: Host, step: CheckStep, error: HostError) -> tuple[Remedy, ...]:
    """Return fixes for an error of that step, the most likely first."""
    if isinstance(error, LoginRefusedError):
        return _suggest_key_installation(host)
    if isinstance(error, SharedFolderError):
        return OTHER_WORK_DIR
    if isinstance(error, HostKeyMismatchError):
        return (("Try the step Host key again: it shows the current key of the host.", ""),)
    if step in {CheckStep.REACH, CheckStep.KEY}:
        return _suggest_reachability(host, error)
    if step == CheckStep.LOGIN:
        return _suggest_folder_creation(host)
    if step == CheckStep.PYTHON:
        return _INSTALL_PYTHON
    return _suggest_unpacking(host)


def suggest_key_comparison(shown: HostKey) -> tuple[Remedy, ...]:
    kind = shown.type.removeprefix("ssh-").split("-")[0]
    command = f"ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub"
    return (("Compare the fingerprint with that on the host itself:", command),)


def suggest_tool_installation(facts: Mapping[str, Any]) -> tuple[Remedy, ...]:
    advice = "Put the missing tools on the PATH of the user, or let Pitwall send them: set a binary"
    platform = f"{facts.get('system') or 'the host'} {facts.get('machine') or ''}".strip()
    return (
        (
            f"{advice} for {platform} in the settings of Pitwall, such as:",
            "PITWALL_OHA=/usr/local/bin/oha",
        ),
    )


def suggest_host_setup(host: Host) -> tuple[Remedy, ...]:
    if host.transport == HostTransport.LOCAL:
        advice = "Start Pitwall's workers as a user with control groups. This prepares one:"
        return ((advice, f"sudo ./pitwall host setup --user {DEFAULT_ACCOUNT}"),)
    return (
        (
            "On the host, as root; the page of the host shows the script that it runs:",
            f"sudo ./pitwall host setup --user {host.login}",
        ),
        ("If it has created another user, change the SSH settings below.", ""),
    )


def suggest_quieting(idle: Mapping[str, Any]) -> tuple[Remedy, ...]:
    processes: Remedy = ("Find the processes, and stop them or move them elsewhere:", "top -o %CPU")
    timers: Remedy = (
        "Automatic updates can be disabled (Debian, Ubuntu):",
        "sudo systemctl disable --now apt-daily.timer apt-daily-upgrade.timer",
    )
    battery: Remedy = ("Plug it in: on battery, systems save power where they can.", "")
    return (processes, timers, *((battery,) if idle.get("on_battery") else ()))


def suggest_run_as_setup(host: Host) -> tuple[Remedy, ...]:
    return (
        (f"Create the user {host.run_as} on the host:", f"sudo useradd --system {host.run_as}"),
        (
            "Use a work directory that root owns, in folders that all users can enter:",
            "/var/lib/pitwall",
        ),
        ("Use a Python that all users of the host can run:", "/usr/bin/python3"),
        ("Log in as root: change the login user in the SSH settings below.", ""),
        ("Or clear the user for measured code, in the host settings on the host's page.", ""),
    )


def suggest_lingering(host: Host) -> tuple[Remedy, ...]:
    return (
        (
            "With systemd, let the processes of the user continue:",
            f"sudo loginctl enable-linger {host.login}",
        ),
        (
            "If that is not enough, set this in /etc/systemd/logind.conf; then sudo systemctl "
            "restart systemd-logind:",
            "KillUserProcesses=no",
        ),
        ("In a container, start the SSH server as a service and not for each connection.", ""),
    )


def _suggest_reachability(host: Host, error: HostError) -> tuple[Remedy, ...]:
    change: Remedy = (_CHANGE_SETTINGS, "")
    port = host.port
    if isinstance(error, ForbiddenHostError):
        return (change,)
    if isinstance(error, NoSuchNameError):
        advice = "On Pitwall's machine this must show an address:"
        return ((advice, f"getent hosts {host.address}"), change)
    if isinstance(error, PortRefusedError):
        return (
            ("Start its SSH server (Debian, Ubuntu):", "sudo systemctl enable --now ssh"),
            ("On Fedora and similar systems:", "sudo systemctl enable --now sshd"),
            ("On the host, this shows the port on which it listens:", "sudo ss -ltnp | grep sshd"),
            change,
        )
    if isinstance(error, NotSshError):
        advice = "On the host, this shows which program uses the port:"
        return ((advice, f"sudo ss -ltnp 'sport = :{port}'"), change)
    if isinstance(error, NoAnswerError):
        return (
            ("Is it on? From Pitwall's machine:", f"ping -c 3 {host.address}"),
            ("On the host, let the port through its firewall:", f"sudo ufw allow {port}/tcp"),
            change,
        )
    return (("The log of its SSH server has the reason:", "sudo journalctl -u ssh -n 20"), change)


def build_host_setup(host: Host) -> str:
    """Return the script of `pitwall host setup` for the login and key of this host.

    For the machine of the workers it creates an account that they can run as.
    """
    key = _build_key_line(host.credential) if host.credential else ""
    return build_setup_script(host.login or DEFAULT_ACCOUNT, key)


def _build_key_line(credential: Credential) -> str:
    return " ".join([*credential.public_key.split()[:2], "pitwall"])


def build_key_installation(host: Host) -> str:
    """Return the command that lets Pitwall log in to the host; empty if the host has no key."""
    if host.credential is None:
        return ""
    line = _build_key_line(host.credential)
    return (
        f"mkdir -p -m 700 ~/.ssh && echo '{line}' >> ~/.ssh/authorized_keys "
        "&& chmod 600 ~/.ssh/authorized_keys"
    )


def _suggest_key_installation(host: Host) -> tuple[Remedy, ...]:
    return (
        (f"On the host, as the user {host.login}:", build_key_installation(host)),
        ("The log of its SSH server has the reason:", "sudo journalctl -u ssh -n 20"),
        ("If the user or key is different, change the SSH settings below.", ""),
    )


def _suggest_folder_creation(host: Host) -> tuple[Remedy, ...]:
    return (
        (f"{host.login} must be able to create and write it:", f"mkdir -p {host.work_dir}"),
        (
            "SFTP needs this line in /etc/ssh/sshd_config; then sudo systemctl reload ssh:",
            "Subsystem sftp internal-sftp",
        ),
        ("If the folder is different, change the SSH settings below.", ""),
    )


def _suggest_unpacking(host: Host) -> tuple[Remedy, ...]:
    return (
        ("Is there room on its disk?", f"df -h {host.work_dir}"),
        ("The user must own the folder:", f"ls -ld {host.work_dir}"),
    )
