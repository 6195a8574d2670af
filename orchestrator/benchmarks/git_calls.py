"""Calls of git with argument lists, a known environment, and limits on time and output.

git sees no home folder, no configuration of the machine or its users, no SSH agent and no
credential helper: a call passes everything that git may use.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from orchestrator.benchmarks.bounded import (
    MOST_FILE_BYTES,
    MOST_OUTPUT_BYTES,
    Completed,
    Sink,
    TooMuchError,
    run_bounded,
)
from orchestrator.core.errors import InvalidRequestError

#: Time limit of all calls except fetches, archives and bundles.
GIT_TIMEOUT_S = 120.0
_PROGRESS_S = 1.0
_LONGEST_LINE = 4096
_LONGEST_MESSAGE = 500
#: Variables that locate programs and the certificates of authorities.
_PASSED_ON = (
    "PATH", "LD_LIBRARY_PATH", "TMPDIR", "GIT_EXEC_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
)  # fmt: skip


def call_git(
    *args: str,
    config: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    check: bool = True,
    timeout_s: float = GIT_TIMEOUT_S,
    most_bytes: int = MOST_OUTPUT_BYTES,
    limit: str = "",
    file_bytes: int = MOST_FILE_BYTES,
    target: Sink | None = None,
    on_progress: Callable[[str], None] | None = None,
    size_check: Callable[[], None] | None = None,
) -> Completed:
    """Return a call that ended; with `check`, a failure raises InvalidRequestError.

    `config` are git settings of this call; the environment passes them, which other users of the
    machine cannot read. `on_progress` gets git's progress at most once a second. `limit` names the
    setting that defines `most_bytes`.
    """
    progress = Progress(on_progress) if on_progress else None
    try:
        done = run_bounded(
            ["git", *args], _environment(config or {}, variables or {}), timeout_s, most_bytes,
            file_bytes=file_bytes, target=target, check=size_check,
            on_stderr=progress.add if progress else None,
        )  # fmt: skip
    except (TimeoutError, TooMuchError, OSError) as error:
        raise _refusal_of(error, timeout_s, limit) from error
    if check and done.returncode:
        raise refusal(done)
    return done


def _environment(config: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        # Not the home of the account: git and curl look for files there.
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        # The mirror of a path may belong to another user of this machine.
        **_as_variables({"safe.directory": "*", **config}),
        **variables,
    }


def _refusal_of(error: Exception, timeout_s: float, limit: str) -> InvalidRequestError:
    """Return the error of a call that was ended or did not start."""
    if isinstance(error, TimeoutError):
        return InvalidRequestError(
            f"git did not finish within {timeout_s:g} s; is the repository's server reachable?"
        )
    if isinstance(error, TooMuchError):
        advice = f"; the operator of Pitwall can raise {limit}" if limit else ""
        return InvalidRequestError(f"{error}{advice}")
    words = error.strerror if isinstance(error, OSError) else ""
    return InvalidRequestError(f"git failed on the server of Pitwall: {words or error}")


def refusal(done: Completed, *more: str) -> InvalidRequestError:
    """Return the error of a failed call: git's message and additional facts."""
    words = "; ".join((words_of(done.stderr), *filter(None, more)))
    return InvalidRequestError(f"git cannot read the repository: {words}")


def words_of(stderr: bytes) -> str:
    """Return the end of git's output in one line, without overwritten progress lines."""
    lines = (line.rstrip(b"\r").rpartition(b"\r")[2] for line in stderr.rstrip().split(b"\n"))
    text = " ".join(_shown(line) for line in lines if line.strip())
    return text[-_LONGEST_MESSAGE:] or "no reason given"


class Progress:
    """Splits git's terminal output into lines, and reports the newest once a second."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report, self._rest, self._next_at = report, b"", 0.0

    def add(self, data: bytes) -> None:
        *lines, rest = re.split(rb"[\r\n]", self._rest + data)
        self._rest = rest[-_LONGEST_LINE:]
        shown = [text for text in map(_shown, lines) if text]
        now = time.monotonic()
        if shown and now >= self._next_at:
            self._next_at = now + _PROGRESS_S
            self._report(shown[-1])


def _shown(line: bytes) -> str:
    text = line[-_LONGEST_LINE:].decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in text).strip()[:200]


def _as_variables(config: Mapping[str, str]) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(config))}
    for number, (name, value) in enumerate(config.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def is_repository(folder: Path) -> bool:
    return (folder / "HEAD").exists()
