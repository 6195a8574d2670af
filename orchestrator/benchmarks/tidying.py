"""Periodic clean-up by a worker in the data folder and the table of projects."""

import logging
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.conf import settings

from orchestrator.benchmarks.access import move_secrets_out_of_urls
from orchestrator.benchmarks.mirrors import (
    MirrorBusyError,
    lock_mirror,
    parse_mirror_project,
    remove_mirror,
)
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.refs import get_mirror_path
from orchestrator.core.errors import BrokenSealError

logger = logging.getLogger(__name__)

#: A new project may not be in the table yet, and workers of an older version may run until an
#: upgrade has ended.
ORPHAN_AGE_S = 3600.0


def remove_unused_mirrors() -> None:
    """Remove mirrors that no project uses, and seal passwords in URLs of older versions."""
    for mirror in _find_unused(Path(settings.DATA_DIR) / "repositories"):
        _remove_unused(mirror)
    try:
        move_secrets_out_of_urls()
    except BrokenSealError as error:
        # The doctor reports this as well.
        logger.warning("credentials stay in addresses of repositories: %s", error)


def _find_unused(folder: Path) -> Iterator[Path]:
    """Yield mirrors whose projects were deleted or use another mirror, if they are old enough."""
    names = {path.name.removesuffix(".lock") for path in folder.glob("*.git*")}
    projects = {name: parse_mirror_project(name) for name in sorted(names)}
    known = Project.with_deleted.in_bulk({pk for pk in projects.values() if pk is not None})
    for name, pk in projects.items():
        if pk is None:
            continue
        mirror, project = folder / name, known.get(pk)
        if project is None:
            if _are_all_old(path for path in (mirror, _build_lock_path(mirror)) if path.exists()):
                yield mirror
        elif name == f"{pk}.git":
            # From an older version, whose workers read it until all are replaced.
            if _are_all_old([get_mirror_path(project) / "HEAD"]):
                yield mirror
        elif name != get_mirror_path(project).name:
            yield mirror


def _are_all_old(paths: Iterable[Path]) -> bool:
    """Return whether all of them exist and were not changed in the last hour."""
    newest = time.time() - ORPHAN_AGE_S
    return all(path.exists() and path.stat().st_mtime <= newest for path in paths)


def _remove_unused(mirror: Path) -> None:
    try:
        with lock_mirror(mirror, wait_s=0.0):
            remove_mirror(mirror)
            _build_lock_path(mirror).unlink(missing_ok=True)
    except MirrorBusyError:
        return
    logger.info("removed the mirror %s: no project uses it", mirror.name)


def _build_lock_path(mirror: Path) -> Path:
    return Path(f"{mirror}.lock")
