"""The read-only commands: `status` of a step, `log` of a build, `has` files."""

from __future__ import annotations

import codecs
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Optional

from .. import lock
from ..paths import StepDir, resolve_below
from ..step import dropped_trials, journal
from ..step.keepalive import read_beat_age_s

LOG_BYTES = 64 * 1024


def status(root: Path, options: Namespace) -> dict[str, Any]:
    step = StepDir(root, options.job, options.step)
    # Before the journal is read: a supervisor that ends in between has written everything.
    alive = lock.is_held(step.lock)
    if step.path.is_dir():
        step.keepalive.touch()
    events, offset = journal.read_from(step.journal, options.offset)
    return {
        "alive": alive,
        "started": step.pid_file.exists(),
        "now": time.time(),
        "offset": offset,
        "dropped": len(dropped_trials.read(step.dropped)),
        "beat_age_s": read_beat_age_s(step),
        "idle_s": _compute_idle_s(step.journal),
        "events": events,
    }


def _compute_idle_s(path: Path) -> Optional[float]:
    """Return the seconds since the last event; None without one."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except FileNotFoundError:
        return None


def log(root: Path, options: Namespace) -> dict[str, Any]:
    path = StepDir(root, options.job, options.step).build_log(options.build)
    try:
        with open(path, "rb") as file:
            file.seek(options.offset)
            data = file.read(LOG_BYTES)
    except FileNotFoundError:
        data = b""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    # An incomplete character is left for the next call.
    left = len(decoder.getstate()[0])
    return {"offset": options.offset + len(data) - left, "text": text}


def has(root: Path, options: Namespace) -> dict[str, Any]:
    return {"present": {path: resolve_below(root, path).is_file() for path in options.paths}}
