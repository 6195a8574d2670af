"""Watch one input: its errors, where it writes, what it starts, how long it takes."""

import os
import random
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.inputs.target import Target

#: CPU seconds, and seconds, that one input may take.
MOST_CPU_S, MOST_S = 5.0, 60.0
#: A decompression bomb causes a MemoryError, instead of using up the machine's memory.
MEMORY_BYTES = 6 << 30
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Audit events with the indexes of the arguments that are written paths.
_CHANGES = {
    "os.mkdir": (0,), "os.rename": (0, 1), "os.remove": (0,), "os.rmdir": (0,), "os.symlink": (1,),
    "os.link": (1,), "os.chmod": (0,), "os.chown": (0,), "os.truncate": (0,), "os.utime": (0,),
}  # fmt: skip
_STARTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty",
     "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "exec_file"}
)  # fmt: skip


class Forbidden(BaseException):
    """A BaseException, so that no `except Exception` of the watched code catches it."""


class TooLong(BaseException):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    target: str
    number: int
    report_text: str
    shown: bytes


class _Watch:
    folder: str | None = None
    seen: str = ""


def begin() -> None:
    """Call it once per process, before the first input."""
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _too_long)
    signal.signal(signal.SIGALRM, _too_long)
    sys.addaudithook(_noted)


def made(target: Target, samples: Sequence[Any], seed: int, number: int) -> Any:
    """Return the input of that number."""
    chance = random.Random(f"{seed} {target.name} {number}")
    sample = chance.choice(samples)
    # The first inputs are the samples themselves: a parser that refuses them tests nothing.
    return target.change(chance, sample, samples) if number >= len(samples) else samples[number]


def attempt(
    target: Target, samples: Sequence[Any], seed: int, number: int, folder: Path
) -> Finding | None:
    """Return what is wrong with the parsing of this input; None if all is well."""
    given = made(target, samples, seed, number)
    try:
        with _watched(folder):
            target.read(given, folder)
    except target.errors as error:
        problem = _unprintable(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        problem = _trace(error)
    else:
        problem = ""
    problem = _Watch.seen or problem
    if any(folder.iterdir()):
        _empty(folder)
    if not problem:
        return None
    return Finding(
        target=target.name, number=number, report_text=problem, shown=encode_input(given)
    )


def encode_input(given: Any) -> bytes:
    """Return an input in the form in which it is stored in a file."""
    return given if isinstance(given, bytes) else repr(given).encode("utf-8", "backslashreplace")


@contextmanager
def _watched(folder: Path) -> Iterator[None]:
    _Watch.folder, _Watch.seen = os.path.realpath(folder), ""
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    signal.setitimer(signal.ITIMER_REAL, MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _Watch.folder = None


def _too_long(number: int, _frame: object) -> None:
    raise TooLong(f"it took longer than {MOST_CPU_S} s of CPU, or than {MOST_S} s")


def _noted(event: str, arguments: tuple[Any, ...]) -> None:
    if _Watch.folder is None:
        return
    if event == "open":
        path, _, flags = arguments
        paths = (path,) if isinstance(flags, int) and flags & _WRITING else ()
    elif event in _CHANGES:
        paths = tuple(arguments[place] for place in _CHANGES[event])
    elif event in _STARTS:
        _forbid(f"it did {event} {arguments!r}"[:500])
        return
    else:
        return
    beside = arguments[-1] if event in _CHANGES else None
    for path in paths:
        if isinstance(path, str | bytes | os.PathLike) and not _is_inside(
            path, beside, _Watch.folder
        ):
            _forbid(f"it did {event} outside of its folder: {path!r}"[:500])


def _is_inside(path: str | bytes | os.PathLike[str], beside: object, folder: str) -> bool:
    """Return whether a path is inside; a link is changed where it is, not where it points.

    `beside`: an open folder for a relative path, or something else.
    """
    below = f"/proc/self/fd/{beside}" if isinstance(beside, int) and beside >= 0 else os.getcwd()
    parent, name = os.path.split(os.path.join(below, os.fsdecode(path)))
    place = os.path.join(os.path.realpath(parent), name)
    return place == folder or place.startswith(folder + os.sep) or place == os.devnull


def _forbid(message: str) -> None:
    _Watch.seen = _Watch.seen or message
    raise Forbidden(message)


def _unprintable(error: BaseException) -> str:
    """An error is for people: it must have a text."""
    return "" if str(error).strip() else f"{type(error).__name__} without a message"


def _trace(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return f"RecursionError: {error}\n{''.join(traceback.format_tb(error.__traceback__)[-3:])}"
    return "".join(traceback.format_exception(error))[-3000:]


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
