"""The settings of a Linux host that tuning can change, and their files.

All paths are below a root that tests can set.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Optional

SYSTEM = Path("/")
CPU = "sys/devices/system/cpu"
#: Values of smt/control that cannot be changed.
_FIXED = ("notsupported", "notimplemented", "forceoff")
#: What the kernel answers for the cpufreq policy of an offline CPU.
_INACTIVE = (errno.EBUSY, errno.ENODEV)
_HINTS = {
    errno.EACCES: "only root may write it",
    errno.EPERM: "only root may write it",
    errno.EROFS: "it is read-only here, as in most containers",
    errno.EBUSY: "the kernel does not accept this value now",
}


class Knob(NamedTuple):
    """`files`: patterns, with the file's value of each choice; None = the choice itself.

    `choices`: the file in the same folder that lists the choices. `highest`: the largest number.
    `follows`: files in the same folder that the kernel changes together with this one.
    """

    files: Mapping[str, Optional[Mapping[str, str]]]
    choices: str = ""
    highest: Optional[int] = None
    follows: tuple[str, ...] = ()


#: In the order of setting: SMT determines which CPUs have a governor.
KNOBS = {
    "smt": Knob({f"{CPU}/smt/control": {"on": "on", "off": "off"}}),
    "governor": Knob(
        {f"{CPU}/cpufreq/policy*/scaling_governor": None},
        choices="scaling_available_governors",
        follows=("energy_performance_preference",),
    ),
    "turbo": Knob(
        {
            f"{CPU}/intel_pstate/no_turbo": {"on": "0", "off": "1"},
            f"{CPU}/cpufreq/boost": {"on": "1", "off": "0"},
        }
    ),
    "aslr": Knob({"proc/sys/kernel/randomize_va_space": {"on": "2", "off": "0"}}),
    "swappiness": Knob({"proc/sys/vm/swappiness": None}, highest=200),
}


class Setting(NamedTuple):
    """A value of one file. `path` is relative to the root; `knob` is the name of its knob."""

    knob: str
    path: str
    value: str


class KnobRefused(Exception):
    """A knob cannot be set; the message is the reason."""


def list_available_knobs(system: Path = SYSTEM) -> list[str]:
    """Return the knobs that this user could set here."""
    return [
        name
        for name, knob in KNOBS.items()
        if any(_can_set(path) for path, _values in _list_files(knob, system))
    ]


def resolve_settings(name: str, choice: str, system: Path) -> list[Setting]:
    """Return the value of each file for this choice; KnobRefused or OSError if there is none."""
    knob = KNOBS[name]
    files = _list_files(knob, system)
    if not files:
        raise KnobRefused("this host has no such setting; remove it from the settings of the host")
    settings = []
    for path, values in files:
        if read_value(path) in _FIXED:
            raise KnobRefused(f"{path} is {read_value(path)!r} on this machine")
        value = _resolve_value(knob, path, values, choice)
        settings.append(Setting(name, str(path.relative_to(system)), value))
    return settings


def list_followers(setting: Setting, system: Path) -> list[str]:
    """Return the paths of files that the kernel changes together with this one."""
    path = system / setting.path
    followers = [path.with_name(name) for name in KNOBS[setting.knob].follows]
    return [str(each.relative_to(system)) for each in followers if each.exists()]


def read_value(path: Path) -> str:
    with _naming(path):
        return path.read_text().strip()


def write_value(path: Path, value: str) -> None:
    with _naming(path):
        path.write_text(value)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the file to an error of the kernel: those of read() and write() name none."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def describe_error(error: OSError) -> str:
    """Return the file and the reason why it cannot be used."""
    hint = _HINTS.get(error.errno or 0)
    return f"{error.filename}: {error.strerror or error}" + (f" ({hint})" if hint else "")


def _can_set(path: Path) -> bool:
    return os.access(path, os.W_OK) and read_value(path) not in _FIXED


def _resolve_value(knob: Knob, path: Path, values: Optional[Mapping[str, str]], choice: str) -> str:
    if values is not None:
        choices = list(values)
    elif knob.highest is not None:
        choices = [str(number) for number in range(knob.highest + 1)]
    else:
        choices = read_value(path.with_name(knob.choices)).split()
    if choice not in choices:
        shown = f"0 to {knob.highest}" if knob.highest is not None else ", ".join(choices)
        raise KnobRefused(f"{choice!r} is none of: {shown}")
    return values[choice] if values is not None else choice


def _list_files(knob: Knob, system: Path) -> list[tuple[Path, Optional[Mapping[str, str]]]]:
    return [
        (path, values)
        for pattern, values in knob.files.items()
        for path in sorted(system.glob(pattern), key=_split_numbers)
        if _is_active(path)
    ]


def _split_numbers(path: Path) -> list[tuple[int, str]]:
    """Return a key that sorts policy2 before policy10."""
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))
    ]


def _is_active(path: Path) -> bool:
    """Return whether a cpufreq policy has an online CPU; True for all other files.

    The kernel keeps the policy of an offline CPU. New kernels answer EBUSY there, old ones show an
    empty list of CPUs and refuse only to write. The CPU gets its own governor back with SMT.
    """
    try:
        return read_value(path.with_name("affected_cpus")) != ""
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in _INACTIVE:
            return False
        raise
