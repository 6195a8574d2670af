"""What a worker does about messages that it took from a Redis that went away."""

from typing import Any

from kombu.transport.redis import QoS


class QoSWithoutRedis(QoS):
    """Lets go of them: nobody needs them, since the pump wakes what is due. By kombu's own QoS the
    worker exits, as it wants to use a connection that was dropped."""

    restore_at_shutdown = False

    def ack(self, delivery_tag: Any) -> None:
        """Nothing where the message came by a channel that was closed since: a task that began
        before Redis went away is acknowledged when there is a new one."""
        if self.channel.connection is not None:
            super().ack(delivery_tag)
