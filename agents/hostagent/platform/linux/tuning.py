"""Host settings that make measurements more stable: set for a step, restored after it.

Opt-in and Linux only. The old values are stored on the disk before any change. They are restored at
the end of the step, on SIGTERM, and after `kill -9` by the next command. A reboot restores them
itself: a record of another boot is only removed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Optional

from ... import lock
from ...files import write_json

RECORD = "tuning.json"
HOST_LOCK = "host.lock"
SYSTEM = Path("/")
#: A check whether the lock is held takes it for an instant.
_PATIENCE_S = 0.05
_BOOT_ID = "proc/sys/kernel/random/boot_id"
_CPU = "sys/devices/system/cpu"
#: Values of smt/control that cannot be changed.
_FIXED = ("notsupported", "notimplemented", "forceoff")


class Knob(NamedTuple):
    """`files`: patterns, with the file's value of each choice; None = the choice itself.

    `choices`: the file in the same folder that lists the choices. `highest`: the largest number.
    """

    files: Mapping[str, Optional[Mapping[str, str]]]
    choices: str = ""
    highest: Optional[int] = None


#: In the order of setting: a CPU that SMT takes offline has no governor.
KNOBS = {
    "smt": Knob({f"{_CPU}/smt/control": {"on": "on", "off": "off"}}),
    "governor": Knob(
        {f"{_CPU}/cpufreq/policy*/scaling_governor": None}, choices="scaling_available_governors"
    ),
    "turbo": Knob(
        {
            f"{_CPU}/intel_pstate/no_turbo": {"on": "0", "off": "1"},
            f"{_CPU}/cpufreq/boost": {"on": "1", "off": "0"},
        }
    ),
    "aslr": Knob({"proc/sys/kernel/randomize_va_space": {"on": "2", "off": "0"}}),
    "swappiness": Knob({"proc/sys/vm/swappiness": None}, highest=200),
}


class Change(NamedTuple):
    knob: str
    path: str
    old: str
    new: str


class _KnobRefused(Exception):
    """A knob cannot be set; the message is the reason."""


@contextlib.contextmanager
def apply_tuning(
    root: Path, wanted: Mapping[str, str], system: Path = SYSTEM
) -> Iterator[dict[str, dict[str, str]]]:
    """Set the knobs `wanted` for the block; the caller holds host.lock.

    Yields {"applied": {knob: value}, "refused": {knob: reason}, "left": {}}. After the block
    "left" is {knob: reason} for values that were not restored, because another program has changed
    them.
    """
    outcome: dict[str, dict[str, str]] = {"applied": {}, "refused": {}, "left": {}}
    _undo(root, system)
    try:
        _set_all(root, wanted, system, outcome)
        yield outcome
    finally:
        outcome["left"].update(_undo(root, system))


def undo_leftover_tuning(root: Path, system: Path = SYSTEM) -> bool:
    """Restore the settings that a dead supervisor changed; True if there was anything."""
    if not (root / RECORD).exists():
        return False
    held = lock.take(root / HOST_LOCK, patience_s=_PATIENCE_S)
    if held is None:  # its supervisor lives
        return False
    try:
        _undo(root, system)
    finally:
        os.close(held)
    return True


def list_available_knobs(system: Path = SYSTEM) -> list[str]:
    """Return the knobs that this user could set here."""
    return [
        name
        for name, knob in KNOBS.items()
        if any(_can_set(path) for path, _values in _list_files(knob, system))
    ]


def _can_set(path: Path) -> bool:
    return os.access(path, os.W_OK) and path.read_text().strip() not in _FIXED


def _set_all(
    root: Path, wanted: Mapping[str, str], system: Path, outcome: dict[str, dict[str, str]]
) -> None:
    refused = outcome["refused"]
    refused.update(
        {name: f"unknown; there are {', '.join(KNOBS)}" for name in wanted.keys() - KNOBS}
    )
    changes: dict[str, list[Change]] = {}
    for name in (name for name in KNOBS if name in wanted):
        try:
            changes[name] = _list_changes(name, wanted[name], system)
        except (_KnobRefused, OSError) as error:
            refused[name] = str(error)
    _record(root, [change for group in changes.values() for change in group], system)
    for name, group in changes.items():
        try:
            for change in group:
                _set(change)
            outcome["applied"][name] = wanted[name]
        except (_KnobRefused, OSError) as error:
            refused[name] = str(error)


def _list_changes(name: str, choice: str, system: Path) -> list[Change]:
    """Return the necessary changes; empty if all files have the value already."""
    knob = KNOBS[name]
    files = _list_files(knob, system)
    if not files:
        raise _KnobRefused("this host has no such setting")
    changes = []
    for path, values in files:
        old, new = path.read_text().strip(), _resolve_value(knob, path, values, choice)
        if old in _FIXED:
            raise _KnobRefused(f"it is {old} here")
        changes.append(Change(name, str(path), old, new))
    return [change for change in changes if change.old != change.new]


def _resolve_value(knob: Knob, path: Path, values: Optional[Mapping[str, str]], choice: str) -> str:
    if values is not None:
        choices = list(values)
    elif knob.highest is not None:
        choices = [str(number) for number in range(knob.highest + 1)]
    else:
        choices = path.with_name(knob.choices).read_text().split()
    if choice not in choices:
        shown = f"0 to {knob.highest}" if knob.highest is not None else ", ".join(choices)
        raise _KnobRefused(f"{choice!r} is none of: {shown}")
    return values[choice] if values is not None else choice


def _list_files(knob: Knob, system: Path) -> list[tuple[Path, Optional[Mapping[str, str]]]]:
    return [
        (path, values)
        for pattern, values in knob.files.items()
        for path in sorted(system.glob(pattern))
    ]


def _set(change: Change) -> None:
    path = Path(change.path)
    if not path.exists():  # its CPU is offline now
        return
    path.write_text(change.new)
    now = path.read_text().strip()
    if now != change.new:
        raise _KnobRefused(f"{change.path} stays at {now!r}")


def _record(root: Path, changes: list[Change], system: Path) -> None:
    if not changes:
        return
    boot = _read_boot_id(system)
    write_json(root / RECORD, {"boot": boot, "changes": [change._asdict() for change in changes]})
    _sync(root)


def _undo(root: Path, system: Path) -> dict[str, str]:
    """Restore the values of the record, then remove it; return the reasons of failures by knob."""
    record = root / RECORD
    try:
        saved = json.loads(record.read_bytes())
    except FileNotFoundError:
        return {}
    left: dict[str, str] = {}
    failed = False
    if saved["boot"] == _read_boot_id(system):
        for change in reversed([Change(**item) for item in saved["changes"]]):
            try:
                why = _restore(change)
            except OSError as error:
                why, failed = f"{change.path} cannot be restored: {error}", True
            if why:
                left[change.knob] = why
    if not failed:  # else the next command tries again
        record.unlink()
        _sync(root)
    return left


def _restore(change: Change) -> str:
    """Restore one value; return "" or the reason of the failure."""
    path = Path(change.path)
    now = path.read_text().strip() if path.exists() else change.old
    if now == change.new:
        path.write_text(change.old)
    elif now != change.old:
        return (
            f"another program set {change.path} to {now!r}; before the step it was {change.old!r}"
        )
    return ""


def _read_boot_id(system: Path) -> str:
    try:
        return (system / _BOOT_ID).read_text().strip()
    except OSError:
        return ""


def _sync(folder: Path) -> None:
    """Make a rename or removal in the folder durable."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
