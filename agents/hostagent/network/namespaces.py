"""Network namespaces of Linux without names; a thread enters one for a block.

No file on the host refers to such a namespace. The kernel removes it with its interfaces when the
last process in it has ended and the last descriptor is closed, also after `kill -9`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator

from ..errors import Aborted

_CLONE_NEWNET = 0x4000_0000
_OWN = "/proc/thread-self/ns/net"
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


class Namespace:
    """A network namespace, which exists at least until `close`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def path(self) -> str:
        """Return a path for other programs, as long as this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread create its sockets, processes and threads in the namespace."""
        before = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(self._fd)
            try:
                yield
            finally:
                _return_to(before)
        finally:
            os.close(before)

    def close(self) -> None:
        os.close(self._fd)


def create_namespace() -> Namespace:
    """Return a new namespace without interfaces but loopback; OSError without the privilege."""
    before = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # In a user namespace, a thread may leave its network namespace and not return. Entering
        # the present one changes nothing, and fails then.
        _enter(before)
        _call("unshare", _CLONE_NEWNET)
        try:
            return Namespace(os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC))
        finally:
            _return_to(before)
    finally:
        os.close(before)


def _enter(fd: int) -> None:
    _call("setns", fd, _CLONE_NEWNET)


def _return_to(fd: int) -> None:
    """Nothing may continue in the wrong namespace: the step ends."""
    try:
        _enter(fd)
    except OSError as error:
        raise Aborted("internal", f"cannot leave a network namespace: {error}") from error


def _call(name: str, *words: int) -> None:
    if _libc is None:
        raise OSError("network namespaces need Linux")
    if getattr(_libc, name)(*words) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
