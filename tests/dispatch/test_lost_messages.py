"""A task that began before Redis went away is acknowledged when there is a new connection."""

import logging
import uuid

from kombu import Message, Queue

from orchestrator.config.celery import app


def taken(channel) -> Message:
    """A message of a queue of its own, not yet acknowledged."""
    queue = Queue(f"lost-{uuid.uuid4().hex}", auto_delete=True)(channel)
    queue.declare()
    app.amqp.Producer(channel).publish({"n": 1}, routing_key=queue.name, serializer="json")
    message = queue.get()
    assert message is not None
    return message


def test_a_message_is_acknowledged_on_an_open_channel():
    with app.connection_for_read() as connection:
        channel = connection.channel()
        message = taken(channel)
        assert channel.client.hexists(channel.unacked_key, message.delivery_tag)
        message.ack()
        assert not channel.client.hexists(channel.unacked_key, message.delivery_tag)


def test_the_worker_continues_if_its_channel_was_closed():
    with app.connection_for_read() as connection:
        message = taken(connection.channel())
        message.channel.close()
        # What a worker calls: any other error than these ends it.
        message.ack_log_error(logging.getLogger(__name__), connection.connection_errors)
    assert message.acknowledged
