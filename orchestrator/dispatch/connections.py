"""A pool of open connections to hosts: reuse is ten times cheaper than a new connection.

There is one pool per worker process. One thread at a time uses a connection. Any error on it closes
it, so the next user gets a new one.
"""

import contextlib
import resource
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import count

from orchestrator.fleet.connect import connect
from orchestrator.fleet.models import Host
from orchestrator.transport.base import Transport

IDLE_S = 120.0
#: Each needs a thread and a descriptor; idle ones need nearly no CPU time.
MOST_IDLE = 2_000
#: The share of the process's descriptors for idle connections.
DESCRIPTORS = 1 / 2


def _compute_most_idle() -> int:
    """Return how many connections may be idle, by the process's limit of open files."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_IDLE if most == resource.RLIM_INFINITY else min(MOST_IDLE, int(most * DESCRIPTORS))


@dataclass(frozen=True, slots=True)
class _IdleConnection:
    key: Hashable
    transport: Transport
    since: float


@dataclass(slots=True)
class Connections:
    """Lends open transports; `open_` creates a new one.

    `_idle`: by number, the oldest first. `_numbers`: those of each host, the oldest first.
    """

    open_: Callable[[Host], Transport] = connect
    idle_s: float = IDLE_S
    most_idle: int = field(default_factory=_compute_most_idle)
    _idle: OrderedDict[int, _IdleConnection] = field(default_factory=OrderedDict)
    _numbers: defaultdict[Hashable, list[int]] = field(default_factory=lambda: defaultdict(list))
    _count: Iterator[int] = field(default_factory=count)
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
            idle = [self._remove_oldest() for _ in range(len(self._idle))]
        for each in idle:
            each.transport.close()

    def _take(self, host: Host) -> Transport | None:
        usable = None
        with self._lock:
            numbers = self._numbers.get(_build_connection_key(host), [])
            while numbers and usable is None:
                transport = self._idle.pop(numbers.pop()).transport
                usable = transport if transport.is_open() else None
        self._close_old()
        return usable

    def _keep(self, host: Host, transport: Transport) -> None:
        with self._lock:
            number, key = next(self._count), _build_connection_key(host)
            self._idle[number] = _IdleConnection(key, transport, time.monotonic())
            self._numbers[key].append(number)

    def _close_old(self) -> None:
        """Close connections that were idle for `idle_s`, and the oldest ones beyond `most_idle`."""
        old = []
        with self._lock:
            oldest = time.monotonic() - self.idle_s
            while self._idle and (len(self._idle) > self.most_idle or self._oldest.since < oldest):
                old.append(self._remove_oldest())
        for each in old:
            each.transport.close()

    @property
    def _oldest(self) -> _IdleConnection:
        return next(iter(self._idle.values()))

    def _remove_oldest(self) -> _IdleConnection:
        _, removed = self._idle.popitem(last=False)
        numbers = self._numbers[removed.key]
        numbers.pop(0)
        if not numbers:
            del self._numbers[removed.key]
        return removed


def _build_connection_key(host: Host) -> Hashable:
    """Return the settings of a connection: after a change of any of them a new one is opened."""
    return (
        host.pk, host.state, host.transport, host.address, host.port, host.login, host.host_key,
        host.work_dir, host.credential_id, *host.jump_hosts,
    )  # fmt: skip


#: The pool of this process.
CONNECTIONS = Connections()
