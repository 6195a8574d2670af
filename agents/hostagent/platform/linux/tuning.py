"""Settings of the host that make measurements steadier: set for a step, put back after it.

Opt-in and Linux only. The old values are on the disk before anything is changed, so they are put
back at the end of the step, on SIGTERM, and after `kill -9` at the next contact. A reboot puts
them back by itself: a record of another boot is only removed.
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
#: Who only looks whether the lock is held has it for an instant.
_PATIENCE_S = 0.05
_BOOT_ID = "proc/sys/kernel/random/boot_id"
_CPU = "sys/devices/system/cpu"
#: Values of smt/control that cannot be changed.
_FIXED = ("notsupported", "notimplemented", "forceoff")


class Knob(NamedTuple):
    """`files`: patterns, and what each word means in the files that match; None = the word itself.

    `choices` is the file beside that lists the words, `highest` the largest number.
    """

    files: Mapping[str, Optional[Mapping[str, str]]]
    choices: str = ""
    highest: Optional[int] = None


#: In the order of setting: what SMT takes offline has no governor any more.
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


class _Refused(Exception):
    """The text is why a knob cannot be set."""


@contextlib.contextmanager
def tuned(
    root: Path, wanted: Mapping[str, str], system: Path = SYSTEM
) -> Iterator[dict[str, dict[str, str]]]:
    """Set the knobs `wanted` for the block; the caller holds host.lock.

    Yields {"applied": {knob: value}, "refused": {knob: why}, "left": {}}. After the block "left"
    is {knob: why} for what was not put back, as somebody else had changed it meanwhile.
    """
    said: dict[str, dict[str, str]] = {"applied": {}, "refused": {}, "left": {}}
    _undo(root, system)
    try:
        _set_all(root, wanted, system, said)
        yield said
    finally:
        said["left"].update(_undo(root, system))


def undo_left(root: Path, system: Path = SYSTEM) -> bool:
    """Put back what a supervisor that is no more had set; True if there was anything."""
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


def available(system: Path = SYSTEM) -> list[str]:
    """The knobs that this user could set here."""
    return [
        name
        for name, knob in KNOBS.items()
        if any(_can_set(path) for path, _words in _files(knob, system))
    ]


def _can_set(path: Path) -> bool:
    return os.access(path, os.W_OK) and path.read_text().strip() not in _FIXED


def _set_all(
    root: Path, wanted: Mapping[str, str], system: Path, said: dict[str, dict[str, str]]
) -> None:
    refused = said["refused"]
    refused.update(
        {name: f"unknown; there are {', '.join(KNOBS)}" for name in wanted.keys() - KNOBS}
    )
    changes: dict[str, list[Change]] = {}
    for name in (name for name in KNOBS if name in wanted):
        try:
            changes[name] = _changes(name, wanted[name], system)
        except (_Refused, OSError) as error:
            refused[name] = str(error)
    _record(root, [change for group in changes.values() for change in group], system)
    for name, group in changes.items():
        try:
            for change in group:
                _set(change)
            said["applied"][name] = wanted[name]
        except (_Refused, OSError) as error:
            refused[name] = str(error)


def _changes(name: str, word: str, system: Path) -> list[Change]:
    """What has to be written where; empty where all is as wanted already."""
    knob = KNOBS[name]
    files = _files(knob, system)
    if not files:
        raise _Refused("this host has no such setting")
    found = []
    for path, words in files:
        old, new = path.read_text().strip(), _value(knob, path, words, word)
        if old in _FIXED:
            raise _Refused(f"it is {old} here")
        found.append(Change(name, str(path), old, new))
    return [change for change in found if change.old != change.new]


def _value(knob: Knob, path: Path, words: Optional[Mapping[str, str]], word: str) -> str:
    if words is not None:
        choices = list(words)
    elif knob.highest is not None:
        choices = [str(number) for number in range(knob.highest + 1)]
    else:
        choices = path.with_name(knob.choices).read_text().split()
    if word not in choices:
        shown = f"0 to {knob.highest}" if knob.highest is not None else ", ".join(choices)
        raise _Refused(f"{word!r} is none of: {shown}")
    return words[word] if words is not None else word


def _files(knob: Knob, system: Path) -> list[tuple[Path, Optional[Mapping[str, str]]]]:
    return [
        (path, words)
        for pattern, words in knob.files.items()
        for path in sorted(system.glob(pattern))
    ]


def _set(change: Change) -> None:
    path = Path(change.path)
    if not path.exists():  # its CPU is offline now
        return
    path.write_text(change.new)
    now = path.read_text().strip()
    if now != change.new:
        raise _Refused(f"{change.path} stays at {now!r}")


def _record(root: Path, changes: list[Change], system: Path) -> None:
    if not changes:
        return
    boot = _boot_id(system)
    write_json(root / RECORD, {"boot": boot, "changes": [change._asdict() for change in changes]})
    _sync(root)


def _undo(root: Path, system: Path) -> dict[str, str]:
    """Put back what the record says was changed; why not, by knob. The record goes last."""
    record = root / RECORD
    try:
        noted = json.loads(record.read_bytes())
    except FileNotFoundError:
        return {}
    left: dict[str, str] = {}
    failed = False
    if noted["boot"] == _boot_id(system):
        for change in reversed([Change(**item) for item in noted["changes"]]):
            try:
                why = _put_back(change)
            except OSError as error:
                why, failed = f"{change.path} cannot be put back: {error}", True
            if why:
                left[change.knob] = why
    if not failed:  # else the next contact tries again
        record.unlink()
        _sync(root)
    return left


def _put_back(change: Change) -> str:
    """ "" or why the value stays as it is."""
    path = Path(change.path)
    now = path.read_text().strip() if path.exists() else change.old
    if now == change.new:
        path.write_text(change.old)
    elif now != change.old:
        return f"somebody set {change.path} to {now!r} meanwhile; before it was {change.old!r}"
    return ""


def _boot_id(system: Path) -> str:
    try:
        return (system / _BOOT_ID).read_text().strip()
    except OSError:
        return ""


def _sync(folder: Path) -> None:
    """A file that was renamed or removed is so on the disk, too."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
