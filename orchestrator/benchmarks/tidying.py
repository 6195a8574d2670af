"""What a worker removes and moves now and then in the data folder and the table of projects."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from orchestrator.benchmarks.access import move_secrets_out_of_urls
from orchestrator.benchmarks.mirrors import (
    MirrorBusyError,
    lock_mirror,
    project_of_mirror,
    remove_mirror,
)
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.services import mirror_of
from orchestrator.core.errors import BrokenSealError

logger = logging.getLogger(__name__)

#: A project that is being added may not be in the table yet.
ORPHAN_AGE_S = 3600.0


def tick() -> None:
    """Removes mirrors without a project and those of addresses that projects had before, and seals
    passwords in addresses of older versions."""
    for mirror, is_orphan in _unused(Path(settings.DATA_DIR) / "repositories"):
        if not is_orphan or _is_old(mirror):
            _remove_unused(mirror)
    try:
        move_secrets_out_of_urls()
    except BrokenSealError as error:
        # The doctor reports it as well.
        logger.warning("credentials stay in addresses of repositories: %s", error)


def _unused(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Mirrors, and whether their projects are gone."""
    names = {path.name.removesuffix(".lock") for path in folder.glob("*.git*")}
    projects = {name: project_of_mirror(name) for name in sorted(names)}
    known = Project.objects.in_bulk({pk for pk in projects.values() if pk is not None})
    for name, pk in projects.items():
        if pk is None:
            continue
        if pk not in known:
            yield folder / name, True
        elif name != mirror_of(known[pk]).name:
            yield folder / name, False


def _is_old(mirror: Path) -> bool:
    oldest = time.time() - ORPHAN_AGE_S
    paths = (mirror, _lock_of(mirror))
    return not any(path.exists() and path.stat().st_mtime > oldest for path in paths)


def _remove_unused(mirror: Path) -> None:
    try:
        with lock_mirror(mirror, wait_s=0.0):
            remove_mirror(mirror)
            _lock_of(mirror).unlink(missing_ok=True)
    except MirrorBusyError:
        return
    logger.info("removed the mirror %s: no project uses it", mirror.name)


def _lock_of(mirror: Path) -> Path:
    return Path(f"{mirror}.lock")
