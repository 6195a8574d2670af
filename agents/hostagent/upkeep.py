"""The verbs that look after the host: what it is, and what it keeps."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from .facts import gather
from .prune import prune as remove_old


def facts(_root: Path, _options: Namespace) -> dict[str, Any]:
    return {"facts": gather()}


def prune(root: Path, options: Namespace) -> dict[str, Any]:
    removed, left = remove_old(root, options.keep_days, options.limit_bytes)
    return {"removed": removed, "bytes": left}
