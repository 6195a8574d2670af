"""How a worker lives through a Redis that goes away and comes back."""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as kombu_redis


class QoSWithoutRedis(kombu_redis.QoS):
    """Lets go of the messages taken from the Redis that went away: nobody needs them, since the
    pump wakes what is due. By kombu's own QoS the worker exits, as it wants to use a connection
    that was dropped."""

    restore_at_shutdown = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # For a restoring when the process ends, which would keep the channel until then: one that
        # is closed without Redis does not come to its own taking back of it.
        self._on_collect.cancel()

    def ack(self, delivery_tag: Any) -> None:
        """Nothing where the message came by a channel that was closed since: a task that began
        before Redis went away is acknowledged when there is a new one."""
        if self.channel.connection is not None:
            super().ack(delivery_tag)


class Channel(kombu_redis.Channel):
    QoS = QoSWithoutRedis


class Transport(kombu_redis.Transport):
    """Takes no more part in the event loop when its connection is closed.

    kombu's own leaves its timers and its tick there, and with them its sockets: a worker would
    keep all of each connection that it ever had.
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
    """For each broker that an address names by `redis:` or `rediss:`."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{Transport.__name__}"
