"""What a worker removes and moves now and then in the data folder and the table of projects."""

import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from orchestrator.benchmarks.access import move_secrets_out_of_urls
from orchestrator.benchmarks.mirrors import MirrorBusyError, lock_mirror, remove_mirror
from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import BrokenSealError

logger = logging.getLogger(__name__)

#: A project that is being added may not be in the table yet.
ORPHAN_AGE_S = 3600.0
_MIRROR = re.compile(r"([0-9]{1,18})\.git(?:\.lock)?")


def tick() -> None:
    """Removes mirrors without a project, and seals passwords in addresses of older versions."""
    for mirror in _orphans(Path(settings.DATA_DIR) / "repositories"):
        _remove_orphan(mirror)
    try:
        move_secrets_out_of_urls()
    except BrokenSealError as error:
        # The doctor reports it as well.
        logger.warning("credentials stay in addresses of repositories: %s", error)


def _orphans(folder: Path) -> Iterator[Path]:
    matches = (_MIRROR.fullmatch(path.name) for path in folder.glob("*.git*"))
    ids = {int(match[1]) for match in matches if match}
    known = set(Project.objects.filter(pk__in=ids).values_list("pk", flat=True))
    for each in sorted(ids - known):
        yield folder / f"{each}.git"


def _remove_orphan(mirror: Path) -> None:
    lock = Path(f"{mirror}.lock")
    oldest = time.time() - ORPHAN_AGE_S
    if any(path.exists() and path.stat().st_mtime > oldest for path in (mirror, lock)):
        return
    try:
        with lock_mirror(mirror, wait_s=0.0):
            remove_mirror(mirror)
            lock.unlink(missing_ok=True)
    except MirrorBusyError:
        return
    logger.info("removed the mirror %s: its project is gone", mirror.name)
