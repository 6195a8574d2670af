"""Incoming webhooks of Slack and compatible chats (Mattermost, Rocket.Chat)."""

import json

from orchestrator.alerts.channels.message import Line, Message, Outgoing

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def form(message: Message) -> Outgoing:
    lines = [f"*{_plain(message.title)}*", *map(_line, message.lines)]
    return Outgoing(body=json.dumps({"text": "\n".join(lines)}, ensure_ascii=False))


def _line(line: Line) -> str:
    return f"• {_plain(line.text)} <{line.url}|open>"


def _plain(text: str) -> str:
    """Escape the three signs with a meaning in Slack, so that text mentions nobody."""
    return text.translate(_ESCAPES)
