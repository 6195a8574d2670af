"""Webhooks for machines: the event as JSON, signed so that the receiver knows who sent it."""

import hashlib
import hmac
import json

from orchestrator.alerts.channels.message import Message, Outgoing


def form(message: Message) -> Outgoing:
    """A webhook has no digests: there is one event."""
    return Outgoing(body=json.dumps(message.data[0], ensure_ascii=False))


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """The value of `Pitwall-Signature`: HMAC-SHA256 of `<timestamp>.<body>` in hexadecimal.

    The time is signed too, so that a receiver can refuse what somebody sends again later.
    """
    signed = str(timestamp).encode() + b"." + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"
