"""Removal of what old jobs left on the host."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import lock
from .builds import DONE
from .paths import all_steps


def prune(root: Path, keep_days: float) -> list[str]:
    """Remove jobs, builds and sources untouched for `keep_days`; the paths.

    While any step is live, its job and all builds and sources stay: it may be about to use them.
    """
    oldest = time.time() - keep_days * 86_400
    live = {step.path.parent for step in all_steps(root) if lock.is_held(step.lock)}
    removed = []
    for path in _candidates(root, ("jobs",) if live else ("jobs", "builds", "sources")):
        if path in live or _last_use(path) > oldest:
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        removed.append(str(path.relative_to(root)))
    return removed


def _last_use(path: Path) -> float:
    """A build is used when its mark is touched, everything else when it is written."""
    done = path / DONE
    return (done if done.exists() else path).stat().st_mtime


def _candidates(root: Path, kinds: Sequence[str]) -> Iterator[Path]:
    for kind in kinds:
        yield from sorted(root.glob(f"{kind}/*"))
