"""A pool of open connections to hosts: reuse is ten times cheaper than a new connection.

There is one pool per worker process. One thread at a time uses a connection. Any error on it closes
it, so the next user gets a new one.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from orchestrator.fleet.connect import connect
from orchestrator.fleet.models import Host
from orchestrator.transport.base import Transport

IDLE_S = 120.0
MAX_IDLE = 200


@dataclass(frozen=True, slots=True)
class _IdleConnection:
    transport: Transport
    since: float


@dataclass(slots=True)
class Connections:
    """Lends open transports; `open_` creates a new one."""

    open_: Callable[[Host], Transport] = connect
    idle_s: float = IDLE_S
    _idle: dict[Hashable, list[_IdleConnection]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def to(self, host: Host) -> Iterator[Transport]:
        """Lend a transport for the block; keep it for the next user unless the block raises."""
        transport = self._take(host) or self.open_(host)
        try:
            yield transport
        except BaseException:
            transport.close()
            raise
        self._keep(host, transport)

    def close_all(self) -> None:
        with self._lock:
            idle = [each for kept in self._idle.values() for each in kept]
            self._idle.clear()
        for each in idle:
            each.transport.close()

    def _take(self, host: Host) -> Transport | None:
        usable = None
        with self._lock:
            kept = self._idle.get(_build_connection_key(host), [])
            while kept and usable is None:
                transport = kept.pop().transport
                usable = transport if transport.is_open() else None
        self._close_old()
        return usable

    def _keep(self, host: Host, transport: Transport) -> None:
        with self._lock:
            self._idle.setdefault(_build_connection_key(host), []).append(
                _IdleConnection(transport, time.monotonic())
            )

    def _close_old(self) -> None:
        """Close connections that were idle for `idle_s`, and the oldest ones beyond MAX_IDLE."""
        with self._lock:
            everything = sorted(
                ((each, key) for key, kept in self._idle.items() for each in kept),
                key=lambda pair: pair[0].since,
            )
            oldest = time.monotonic() - self.idle_s
            surplus = len(everything) - MAX_IDLE
            old = [
                pair for at, pair in enumerate(everything) if at < surplus or pair[0].since < oldest
            ]
            for each, key in old:
                self._idle[key].remove(each)
        for each, _ in old:
            each.transport.close()


def _build_connection_key(host: Host) -> Hashable:
    """Return the settings of a connection: after a change of any of them a new one is opened."""
    return (
        host.pk, host.state, host.transport, host.address, host.port, host.login, host.host_key,
        host.work_dir, host.credential_id,
    )  # fmt: skip


#: The pool of this process.
CONNECTIONS = Connections()
