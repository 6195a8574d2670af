"""What a worker does about a connection to a Redis that went away, once there is a new one."""

from typing import Any

from kombu.transport.redis import Transport


class LeavingTransport(Transport):
    """Takes no more part in the event loop when its connection is closed.

    kombu's own leaves its timers and its tick there, and with them its sockets: a worker would
    keep all of each connection that it ever had.
    """

    _loop: Any = None

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        before = set(loop.on_tick)
        super().register_with_event_loop(connection, loop)
        self._loop, self._ticks = loop, loop.on_tick - before

    def close_connection(self, connection: Any) -> None:
        if self._loop is not None:
            self._loop.on_tick.difference_update(self._ticks)
            self._loop = None
            for name, timer in vars(self.cycle).items():
                if name.endswith("_tref") and timer is not None:
                    timer.cancel()
        super().close_connection(connection)
