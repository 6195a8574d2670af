"""A reservation of this host by somebody who works on it: Pitwall then starts no job here.

It is a small file in the work directory. `<work directory>/reserve 2h "debugging"` writes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
import time
from pathlib import Path
from typing import NamedTuple, Optional

from .errors import BadArgument
from .files import write_bytes, write_json

FILE = "reservation.json"
SCRIPT = "reserve"
LONGEST_S = 7 * 86_400.0
_MOST_TEXT = 200
_DURATION = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?\Z")
_UNITS_S = (86_400, 3600, 60)


class Reservation(NamedTuple):
    """`left_s`: seconds until it ends. `by`: the user of this host who made it."""

    left_s: float
    by: str
    reason: str


def read_reservation(root: Path) -> Optional[Reservation]:
    """Return the present reservation; None without one, or if its file is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        content = json.loads((root / FILE).read_text("utf-8"))
        left_s = min(float(content["until"]) - time.time(), LONGEST_S)
        if left_s > 0:
            return Reservation(left_s, _shorten(content["by"]), _shorten(content["reason"]))
    return None


def write_reservation(root: Path, duration: str, reason: str) -> Reservation:
    """Reserve the host from now on; BadArgument if `duration` is none."""
    reservation = Reservation(parse_duration_s(duration), _find_user(), _shorten(reason))
    content = {"until": time.time() + reservation.left_s, "by": reservation.by}
    write_json(root / FILE, {**content, "reason": reservation.reason})
    return reservation


def end_reservation(root: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        (root / FILE).unlink()


def parse_duration_s(text: str) -> float:
    """Return the seconds of a text such as `2h`, `1h30m` or `1d`."""
    match = _DURATION.match(text)
    total = sum(int(n or 0) * unit for n, unit in zip(match.groups(), _UNITS_S)) if match else 0
    if not 0 < total <= LONGEST_S:
        raise BadArgument(f"expected a time such as 30m, 2h or 1d, at most 7d, got {text!r}")
    return float(total)


def write_script(root: Path) -> None:
    """Write the command for people on this host, which runs this agent."""
    program = [sys.executable, "-I", "-S", str(Path(sys.argv[0]).resolve()), "--root", str(root)]
    text = f'#!/bin/sh\nexec {" ".join(map(shlex.quote, program))} reserve "$@"\n'
    path = root / SCRIPT
    with contextlib.suppress(OSError):
        if path.read_text("utf-8") == text:
            return
    write_bytes(path, text.encode())
    path.chmod(0o755)


def _find_user() -> str:
    names = (os.environ.get(name) for name in ("SUDO_USER", "LOGNAME", "USER"))
    return _shorten(next(filter(None, names), "somebody on the host"))


def _shorten(text: object) -> str:
    """Return one line of text without control characters."""
    return "".join(filter(str.isprintable, str(text)))[:_MOST_TEXT]
