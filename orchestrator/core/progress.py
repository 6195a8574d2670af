"""Progress of a command: a bar on a terminal, otherwise a plain line from time to time.

It goes to standard error, so that the output of a command can be piped.

    with build_progress(options, "Importing") as show:
        for done, row in enumerate(rows, start=1):
            …
            show(done, len(rows))
"""

import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TextIO

# The client is one file of the standard library. So the bar is there, and the server uses it.
from cli.pitwall.bar import count_columns, draw_bar

REDRAW_S = 0.1
LINE_EVERY_S = 5.0
#: Shorter work needs no bar.
PATIENCE_S = 0.5
_CLEAR = "\r\x1b[K"


class Progress:
    """Shows the progress at each call, but not more often than is useful.

    Until the first call it shows the seconds that have passed. It is a context manager; a thread
    updates the seconds between calls.
    """

    def __init__(
        self,
        title: str,
        *,
        out: TextIO,
        quiet: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title, self._out, self._quiet, self._now = title, out, quiet, now
        self._live = out.isatty()
        self._began = now()
        self._drawn_at = self._began + (PATIENCE_S - REDRAW_S if self._live else 0.0)
        self._done: int | None = None
        self._total: int | None = None
        self._note = ""
        self._drawn = False
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, done: int, total: int | None = None, note: str = "") -> None:
        """Show the progress. `total`: None if unknown; `note`: the current work."""
        with self._lock:
            self._done, self._total, self._note = done, total, note
            self._draw_if_due()

    def __enter__(self) -> Self:
        if not self._quiet:
            self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._ticker.is_alive():
            self._ticker.join()
        with self._lock:
            if self._drawn and not self._quiet:
                self._draw()
                self._write("\n" if self._live else "")

    def text(self, seconds: float) -> str:
        """Return the line after `seconds`: bar, count, share, time, note."""
        if self._done is None:
            parts = [self._title, _format_time(seconds)]
        elif not self._total:
            parts = [self._title, f"{self._done:,}", _format_time(seconds)]
        else:
            share = min(1.0, self._done / self._total)
            parts = [
                f"{self._title} {draw_bar(self._done, self._total)}",
                f"{self._done:,} of {self._total:,}",
                f"{int(100 * share)} %",
                _format_seconds_left(seconds, share),
            ]
        return "  ".join(part for part in (*parts, self._note) if part)

    def _tick(self) -> None:
        while not self._over.wait(0.25):
            with self._lock:
                self._draw_if_due()

    def _draw_if_due(self) -> None:
        every_s = REDRAW_S if self._live else LINE_EVERY_S
        if not self._quiet and self._now() - self._drawn_at >= every_s:
            self._draw()

    def _draw(self) -> None:
        self._drawn, self._drawn_at = True, self._now()
        text = self.text(self._drawn_at - self._began)
        if self._live:
            self._write(f"{_CLEAR}{text[: count_columns(self._out) - 1]}")
        else:
            self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def add_quiet(parser: ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no bar and no lines of progress")


def build_progress(options: Mapping[str, Any], title: str) -> Progress:
    """Return the progress that the options of a management command ask for."""
    quiet = bool(options.get("quiet")) or options.get("verbosity") == 0
    return Progress(title, out=options.get("stderr") or sys.stderr, quiet=quiet)


def _format_seconds_left(seconds: float, share: float) -> str:
    if share >= 1.0:
        return f"in {_format_time(seconds)}"
    if share <= 0.0 or seconds < 1.0:
        return ""
    return f"about {_format_time(seconds * (1 - share) / share)} left"


def _format_time(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
