"""A scope of systemd for the supervisor: systemd delegates its control group to the agent.

systemd owns every other group. It moves processes there and removes controllers and limits that it
did not set. `systemd-run --scope -p Delegate=yes` would do the same, but can only start a new
program. The same call of systemd's D-Bus interface moves the running supervisor.

Root asks the system's manager, another user the own one. The latter exists without a login, and may
use all controllers, after `pitwall host setup`.
"""

from __future__ import annotations

import os
import subprocess
import time

from .cgroup_hierarchies import PREFIX, is_scope, is_systemd_running, read_own_group

SLICE = f"{PREFIX}.slice"
_SETUP = "run `pitwall host setup` as root on the host"
#: A loaded host may take a while to answer.
_CALL_S = 10.0
_MOVE_S = 5.0
_POLL_S = 0.005
#: The method, the types of its arguments, and those before the properties.
_METHOD = (
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
    "StartTransientUnit",
    "ssa(sv)a(sa(sv))",
)

_problem = ""


def enter_scope() -> str:
    """Move this process into a new scope; return "" or why that was not possible.

    Does nothing where systemd does not manage cgroup v2.
    """
    global _problem
    if is_systemd_running() and not _is_in_scope():
        _problem = _request_scope() or _await_scope()
    return _problem


def explain_missing_groups() -> str:
    """Return why no control group can be created here, and what to do."""
    why = f" ({_problem})" if _problem else ""
    advice = _SETUP if is_systemd_running() else "use root, or a container with its own groups"
    return f"no control group can be created here{why}; {advice}"


def _is_in_scope() -> bool:
    return any(is_scope(name) for name in read_own_group().split("/"))


def _request_scope() -> str:
    try:
        done = subprocess.run(
            _build_call(os.getpid(), is_root=os.geteuid() == 0),
            env={**os.environ, "XDG_RUNTIME_DIR": f"/run/user/{os.geteuid()}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CALL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"busctl of systemd failed: {error}"
    if done.returncode == 0:
        return ""
    return f"systemd refused a scope: {done.stderr.decode('utf-8', 'replace').strip()[:300]}"


def _build_call(pid: int, *, is_root: bool) -> list[str]:
    properties = (
        ("PIDs", "au", "1", str(pid)),
        ("Delegate", "b", "true"),
        ("Slice", "s", SLICE),
        ("CollectMode", "s", "inactive-or-failed"),
    )
    return [
        "busctl",
        "--system" if is_root else "--user",
        "call",
        *_METHOD,
        f"{PREFIX}-{pid}.scope",
        "fail",
        str(len(properties)),
        *(word for each in properties for word in each),
        "0",
    ]


def _await_scope() -> str:
    """Wait for the job of systemd, which moves this process."""
    deadline = time.monotonic() + _MOVE_S
    while time.monotonic() < deadline:
        if _is_in_scope():
            return ""
        time.sleep(_POLL_S)
    return f"systemd did not move the agent into its scope within {_MOVE_S:.0f} s"
