"""Matrix, through a webhook of its bridge (matrix-hookshot): plain text and HTML."""

import json
from html import escape

from orchestrator.alerts.channels.message import Line, Message, OutgoingRequest


def build_request(message: Message) -> OutgoingRequest:
    text = [message.title, *(f"{line.text} {line.url}" for line in message.lines)]
    items = "".join(map(_format_item, message.lines))
    html = f"<strong>{escape(message.title)}</strong><ul>{items}</ul>"
    body = {"text": "\n".join(text), "html": html, "username": "Pitwall"}
    return OutgoingRequest(body=json.dumps(body, ensure_ascii=False))


def _format_item(line: Line) -> str:
    return f'<li>{escape(line.text)} <a href="{escape(line.url)}">open</a></li>'
