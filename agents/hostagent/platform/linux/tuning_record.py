"""The record of changed host settings: on the disk before each change, until all are restored."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Optional

from ...files import write_json
from .knobs import SYSTEM, describe_error, read_value, write_value

RECORD = "tuning.json"
_BOOT_ID = "proc/sys/kernel/random/boot_id"


class Change(NamedTuple):
    """`path` is relative to the root. `new` is None if the kernel chooses the new value."""

    knob: str
    path: str
    old: str
    new: Optional[str]


class ChangeRecord:
    """The changes that are not restored yet, in their order; the caller holds host.lock.

    A reboot restores the settings itself, so changes of another boot are dropped.
    """

    def __init__(self, root: Path, system: Path) -> None:
        self._root = root
        self._system = system
        self._boot = _read_boot_id(system)
        self._changes = _load_changes(root / RECORD, self._boot)
        self._lost: dict[str, str] = {}

    def add(self, changes: Iterable[Change]) -> None:
        """Store the changes durably; call it before the first of them is made.

        A file that an earlier change could not restore keeps its first value.
        """
        old = {change.path: change.old for change in self._changes}
        added = [change._replace(old=old.get(change.path, change.old)) for change in changes]
        paths = {change.path for change in added}
        self._changes = [change for change in self._changes if change.path not in paths] + added
        self._save()

    def undo(self, knob: Optional[str] = None) -> dict[str, str]:
        """Restore the changes, the last one first; only those of `knob` if it is given.

        Return the settings that were not restored, with the reason. Changes that failed stay in the
        record, and the next command tries them again.
        """
        failed: dict[str, str] = {}
        kept: list[Change] = []
        for change in reversed(self._changes):
            if (knob is not None and change.knob != knob) or _depends_on(change, kept):
                kept.append(change)
                continue
            try:
                self._restore(change)
            except OSError as error:
                reason = f"{describe_error(error)}; before the step it was {change.old!r}"
                failed.setdefault(change.knob, reason)
                kept.append(change)
        self._changes = kept[::-1]
        self._save()
        return {**self._lost, **failed}

    def _restore(self, change: Change) -> None:
        path = self._system / change.path
        now = read_value(path)
        if now == change.old or (change.new is None and change.knob in self._lost):
            return
        if change.new is None or now == change.new:
            write_value(path, change.old)
            return
        self._lost[change.knob] = (
            f"another program set {path} to {now!r}; before the step it was {change.old!r}"
        )

    def _save(self) -> None:
        record = self._root / RECORD
        if self._changes:
            changes = [change._asdict() for change in self._changes]
            write_json(record, {"boot": self._boot, "changes": changes})
        elif record.exists():
            record.unlink()
        else:
            return
        _sync(self._root)


def _depends_on(change: Change, others: Iterable[Change]) -> bool:
    """Return whether the kernel sets the file together with one of these, in the same folder."""
    folder = Path(change.path).parent
    return change.new is None and any(Path(each.path).parent == folder for each in others)


def find_unrestored(root: Path, system: Path = SYSTEM) -> dict[str, str]:
    """Return the settings that could not be restored yet, with the files and their old values."""
    return {
        change.knob: f"{system / change.path} was {change.old!r}"
        for change in _load_changes(root / RECORD, _read_boot_id(system))
    }


def _load_changes(record: Path, boot: str) -> list[Change]:
    try:
        saved = json.loads(record.read_bytes())
    except FileNotFoundError:
        return []
    return [Change(**item) for item in saved["changes"]] if saved["boot"] == boot else []


def _read_boot_id(system: Path) -> str:
    with contextlib.suppress(OSError):
        return read_value(system / _BOOT_ID)
    return ""


def _sync(folder: Path) -> None:
    """Make a rename or removal in the folder durable."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
