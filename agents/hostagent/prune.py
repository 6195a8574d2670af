"""Removal of what old jobs left on the host."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from . import lock
from .paths import all_steps


def prune(root: Path, keep_days: float) -> list[str]:
    """Remove jobs, builds and sources untouched for `keep_days`; live steps stay. The paths."""
    oldest = time.time() - keep_days * 86_400
    live = {step.path.parent for step in all_steps(root) if lock.is_held(step.lock)}
    removed = []
    for path in _candidates(root):
        if path in live or path.stat().st_mtime > oldest:
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        removed.append(str(path.relative_to(root)))
    return removed


def _candidates(root: Path) -> Iterator[Path]:
    for kind in ("jobs", "builds", "sources"):
        yield from sorted(root.glob(f"{kind}/*"))
