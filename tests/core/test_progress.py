"""How far a command is, on a terminal and elsewhere."""

import io
from dataclasses import dataclass

import pytest

from orchestrator.core.progress import Progress, build_progress
from tests.support.terminal import a_terminal


@dataclass(slots=True)
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def _progress(out: io.StringIO, clock: Clock) -> Progress:
    return Progress("Importing", out=out, now=clock)


@pytest.mark.parametrize(
    ("seconds", "reported", "text"),
    [
        (3, None, "Importing  3 s"),
        (75, (1200, None, "checked"), "Importing  1,200  1 min 15 s  checked"),
        (6, (1, 4, ""), f"Importing [{'#' * 6}{'.' * 18}]  1 of 4  25 %  about 18 s left"),
        (0, (1, 4, ""), f"Importing [{'#' * 6}{'.' * 18}]  1 of 4  25 %"),
        (7300, (5, 5, ""), f"Importing [{'#' * 24}]  5 of 5  100 %  in 2 h 01 min"),
        (2, (9, 5, ""), f"Importing [{'#' * 24}]  9 of 5  100 %  in 2 s"),
        (2, (0, 0, ""), "Importing  0  2 s"),
    ],
)
def test_progress_shows_count_share_and_remaining_time(
    seconds: float, reported: tuple[int, int | None, str] | None, text: str
) -> None:
    show = _progress(io.StringIO(), Clock())
    if reported is not None:
        show(*reported)
    assert show.text(seconds) == text


def test_progress_writes_lines_at_intervals_without_a_terminal() -> None:
    out, clock = io.StringIO(), Clock()
    with _progress(out, clock) as show:
        for second in range(12):
            clock.now = float(second)
            show(second, 12)
    assert out.getvalue().splitlines() == [
        f"Importing [{'#' * 10}{'.' * 14}]  5 of 12  41 %  about 7 s left",
        f"Importing [{'#' * 20}{'.' * 4}]  10 of 12  83 %  about 2 s left",
        f"Importing [{'#' * 22}{'.' * 2}]  11 of 12  91 %  about 1 s left",
    ]


def test_short_and_quiet_work_shows_no_progress() -> None:
    out, clock = io.StringIO(), Clock()
    with _progress(out, clock) as show:
        show(1, 1)
    for options in ({"quiet": True}, {"verbosity": 0}):
        with build_progress({**options, "stderr": out}, "Importing") as show:
            show(1, 2)
    with a_terminal(columns=80) as terminal, Progress("It", out=terminal.stream, quiet=True):
        pass
    assert out.getvalue() == ""


def test_progress_uses_one_terminal_line_that_ends_even_on_failure() -> None:
    clock = Clock()
    with a_terminal(columns=40) as terminal:
        with pytest.raises(OSError, match="disk"):
            _fail_on(terminal.stream, clock)
        drawn = terminal.read()
    assert drawn.count("\n") == 1
    assert drawn.endswith("\n")
    lines = [line.rstrip("\r\n") for line in drawn.split("\r\x1b[K")[1:]]
    assert lines[0].startswith("Importing [......")
    assert lines[-1].startswith(f"Importing [{'#' * 12}")
    assert {len(line) for line in lines} == {39}


def _fail_on(out: io.TextIOBase, clock: Clock) -> None:
    with Progress("Importing", out=out, now=clock) as show:
        for done in (0, 1, 2):
            clock.now += 1.0
            show(done, 4, "a note that is longer than the terminal is wide")
        raise OSError("the disk is full")
