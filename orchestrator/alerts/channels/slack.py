"""Incoming webhooks of Slack and compatible chats (Mattermost, Rocket.Chat)."""

import json

from orchestrator.alerts.channels.message import Line, Message, OutgoingRequest

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def build_request(message: Message) -> OutgoingRequest:
    lines = [f"*{_escape_text(message.title)}*", *map(_format_line, message.lines)]
    return OutgoingRequest(body=json.dumps({"text": "\n".join(lines)}, ensure_ascii=False))


def _format_line(line: Line) -> str:
    return f"• {_escape_text(line.text)} <{line.url}|open>"


def _escape_text(text: str) -> str:
    """Escape the three signs with a meaning in Slack, so that text mentions nobody."""
    return text.translate(_ESCAPES)
