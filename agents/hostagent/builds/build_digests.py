"""The digests that identify a build, stored next to its tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple, Optional

from ..paths import build_dir

#: Next to a complete tree.
DIGESTS = "digests.json"


class BuildDigests(NamedTuple):
    """SHA-256 in hexadecimal digits, each including the name of the install.

    `source`: the files of the commit, the build steps and their environment. `built`: the files of
    the tree after the build steps, without `.git` and Python's caches.
    """

    source: str
    built: str


def read_digests(root: Path, tree: str) -> Optional[BuildDigests]:
    """Return the digests of a build; None if it is incomplete, or of an older agent."""
    try:
        return BuildDigests(**json.loads((build_dir(root, tree) / DIGESTS).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
