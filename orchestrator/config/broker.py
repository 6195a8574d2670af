"""A broker transport for workers that survives an outage of Redis."""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as kombu_redis


class QoSWithoutRedis(kombu_redis.QoS):
    """Forgets the messages that were taken from a Redis that went away.

    They are not needed, since the pump wakes all due work. With kombu's own QoS the worker exits
    because it uses a connection that was dropped.
    """

    restore_at_shutdown = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # This finalizer restores messages at exit and would keep the channel until then: a channel
        # that is closed without Redis does not reach the code that cancels it.
        self._on_collect.cancel()

    def ack(self, delivery_tag: Any) -> None:
        """Acknowledge a message, unless its channel was closed since.

        A task that began before Redis went away may end when there is a new channel.
        """
        if self.channel.connection is not None:
            super().ack(delivery_tag)


class Channel(kombu_redis.Channel):
    QoS = QoSWithoutRedis


class Transport(kombu_redis.Transport):
    """Leaves the event loop when its connection is closed.

    kombu's own transport leaves its timers and its tick there, and with them its sockets. A worker
    would then leak every connection that it ever had.
    """

    Channel = Channel
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


def use_this_transport() -> None:
    """Use this transport for each broker address with `redis:` or `rediss:`."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{Transport.__name__}"
