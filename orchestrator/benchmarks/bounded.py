"""A program whose output, files and time are bounded: git, which reads what anybody pushed."""

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

#: Of an archive, a bundle or a list: more would fill the memory of a worker.
MOST_OUTPUT_BYTES = 1 << 30
#: Of a file that it writes: a pack without an end would fill the disk.
MOST_FILE_BYTES = 16 << 30
_MOST_WORDS = 1 << 16


class Completed(NamedTuple):
    """`stderr` is the end of it."""

    returncode: int
    stdout: bytes
    stderr: bytes


class TooMuchError(Exception):
    """It wrote more than there is room for; it was ended."""


def run_bounded(
    argv: Sequence[str],
    environment: Mapping[str, str],
    timeout_s: float,
    most_bytes: int = MOST_OUTPUT_BYTES,
) -> Completed:
    """TimeoutError, or TooMuchError, where it has to be ended, with all that it started."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
            env=dict(environment), start_new_session=True,
        )  # fmt: skip
        if hasattr(resource, "prlimit"):  # Linux; it starts nothing so soon.
            with contextlib.suppress(ProcessLookupError):
                limits = (MOST_FILE_BYTES, MOST_FILE_BYTES)
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
        too_late = threading.Event()
        timer = threading.Timer(timeout_s, _end, [process, too_late])
        timer.daemon = True
        timer.start()
        try:
            output = _read(process, most_bytes)
            status = process.wait()
        finally:
            timer.cancel()
            _end(process)
        if too_late.is_set():
            raise TimeoutError
        said.seek(max(0, said.seek(0, os.SEEK_END) - _MOST_WORDS))
        return Completed(status, output, said.read())


def _read(process: "subprocess.Popen[bytes]", most_bytes: int) -> bytes:
    assert process.stdout is not None
    with process.stdout as stream:
        output = stream.read(most_bytes + 1)
    if len(output) > most_bytes:
        raise TooMuchError(f"git gives more than {most_bytes >> 20} MiB at once")
    return output


def _end(process: "subprocess.Popen[bytes]", noted: threading.Event | None = None) -> None:
    """With its session; it is not collected before, so its number is still its own."""
    if process.returncode is None:
        if noted is not None:
            noted.set()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
