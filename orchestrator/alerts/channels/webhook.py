"""Webhooks for programs: the event as JSON, signed so that the receiver can verify the sender."""

import hashlib
import hmac
import json

from orchestrator.alerts.channels.message import Message, OutgoingRequest


def build_request(message: Message) -> OutgoingRequest:
    """Return the only event: a webhook has no digests."""
    return OutgoingRequest(body=json.dumps(message.data[0], ensure_ascii=False))


def sign_body(secret: str, timestamp: int, body: bytes) -> str:
    """Return the value of `Pitwall-Signature`: HMAC-SHA256 of `<timestamp>.<body>` in hexadecimal.

    The time is signed too, so that a receiver can refuse a replayed request.
    """
    signed = str(timestamp).encode() + b"." + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"
