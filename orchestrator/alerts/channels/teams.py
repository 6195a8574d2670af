"""Microsoft Teams: an adaptive card, as its workflows accept it."""

import json
from typing import Any

from orchestrator.alerts.channels.message import Line, Message, OutgoingRequest


def build_request(message: Message) -> OutgoingRequest:
    title = {"type": "TextBlock", "size": "Medium", "weight": "Bolder", "wrap": True}
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{**title, "text": _escape_text(message.title)}, *map(_block, message.lines)],
        "actions": [
            {"type": "Action.OpenUrl", "title": "Open in Pitwall", "url": message.lines[0].url}
        ],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    body = {"type": "message", "attachments": [attachment]}
    return OutgoingRequest(body=json.dumps(body, ensure_ascii=False))


def _block(line: Line) -> dict[str, Any]:
    return {
        "type": "TextBlock",
        "wrap": True,
        "text": f"{_escape_text(line.text)} [open]({line.url})",
    }


def _escape_text(text: str) -> str:
    """Escape Markdown, which cards interpret."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#" else sign for sign in text)
