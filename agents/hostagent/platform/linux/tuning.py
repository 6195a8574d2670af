"""Host settings that make measurements more stable: set for a step, restored after it.

Opt-in and Linux only. The old values are stored on the disk before any change. They are restored at
the end of the step, on SIGTERM, and after `kill -9` by the next command. A setting is set
completely or not at all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ... import lock
from .knobs import (
    KNOBS,
    SYSTEM,
    KnobRefused,
    Setting,
    describe_error,
    list_followers,
    read_value,
    resolve_settings,
    write_value,
)
from .tuning_record import RECORD, Change, ChangeRecord

HOST_LOCK = "host.lock"
#: A check whether the lock is held takes it for an instant.
_PATIENCE_S = 0.05


class Tuning:
    """The settings of one step. `applied`: {knob: value}; `refused` and `left`: {knob: reason}.

    `left` is known after the step: settings that were not restored.
    """

    def __init__(self, system: Path = SYSTEM) -> None:
        self.applied: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self._system = system
        self._settings: list[Setting] = []

    def as_json(self) -> dict[str, Any]:
        """Return TUNED of protocol.py."""
        return {"applied": self.applied, "refused": self.refused}

    def find_changed(self) -> dict[str, str]:
        """Read all files back; return the knobs that something has changed since, with the file."""
        changed: dict[str, str] = {}
        for setting in self._settings:
            path = self._system / setting.path
            try:
                now = read_value(path)
            except OSError as error:
                changed.setdefault(setting.knob, describe_error(error))
                continue
            if now != setting.value:
                difference = f"{path} is {now!r} instead of {setting.value!r}"
                changed.setdefault(setting.knob, difference)
        return changed

    @contextlib.contextmanager
    def apply(self, root: Path, wanted: Mapping[str, str]) -> Iterator[None]:
        """Set the knobs `wanted` for the block, and restore them; the caller holds host.lock."""
        record = ChangeRecord(root, self._system)
        record.undo()
        try:
            self._set_all(wanted, record)
            yield
        finally:
            self.left = record.undo()

    def _set_all(self, wanted: Mapping[str, str], record: ChangeRecord) -> None:
        """Set the knobs; a knob that cannot be set completely is undone."""
        unknown = wanted.keys() - KNOBS
        self.refused = {name: f"unknown; there are {', '.join(KNOBS)}" for name in unknown}
        for name in (name for name in KNOBS if name in wanted):
            try:
                settings = resolve_settings(name, wanted[name], self._system)
                self._set(settings, record)
            except (KnobRefused, OSError) as error:
                refused = describe_error(error) if isinstance(error, OSError) else str(error)
                self.refused[name] = refused
                record.undo(name)
            else:
                self.applied[name] = wanted[name]
                self._settings += settings

    def _set(self, settings: list[Setting], record: ChangeRecord) -> None:
        """Set the files that have another value; the old values are recorded first."""
        old = {each.path: read_value(self._system / each.path) for each in settings}
        differing = [each for each in settings if old[each.path] != each.value]
        if not differing:
            return
        followers = [path for each in differing for path in list_followers(each, self._system)]
        knob = differing[0].knob
        record.add(
            [Change(knob, path, read_value(self._system / path), None) for path in followers]
            + [Change(knob, each.path, old[each.path], each.value) for each in differing]
        )
        for each in differing:
            self._write(each)

    def _write(self, setting: Setting) -> None:
        path = self._system / setting.path
        write_value(path, setting.value)
        now = read_value(path)
        if now != setting.value:
            raise KnobRefused(f"{path} stays at {now!r}")


def undo_leftover_tuning(root: Path, system: Path = SYSTEM) -> bool:
    """Restore the settings that a dead supervisor changed; True if there was anything."""
    if not (root / RECORD).exists():
        return False
    held = lock.take(root / HOST_LOCK, patience_s=_PATIENCE_S)
    if held is None:  # its supervisor lives
        return False
    try:
        ChangeRecord(root, system).undo()
    finally:
        os.close(held)
    return True
