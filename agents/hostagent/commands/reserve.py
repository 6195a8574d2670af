"""The command `reserve`, for people on this host: no job starts here for a while."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from pathlib import Path

from ..errors import BadArgument
from ..reservation import Reservation, end_reservation, read_reservation, write_reservation

OFF = "off"


def reserve(root: Path, options: Namespace) -> None:
    """Reserve the host, end the reservation, or show it; print the result as text."""
    try:
        print(_execute(root, options))
    except BadArgument as error:
        sys.stderr.write(f"reserve: {error.message}; or `off` to end the reservation\n")
        sys.exit(2)


def _execute(root: Path, options: Namespace) -> str:
    if options.time is None:
        reservation = read_reservation(root)
        return _describe(reservation) if reservation else "This host is not reserved."
    if options.time == OFF:
        end_reservation(root)
        return "The reservation has ended. Jobs start again within a minute."
    return _describe(write_reservation(root, options.time, " ".join(options.reason)))


def _describe(reservation: Reservation) -> str:
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() + reservation.left_s))
    why = f" for {reservation.reason}" if reservation.reason else ""
    return (
        f"Reserved by {reservation.by}{why} until {until}. No new job starts here; a running one "
        "may end."
    )
