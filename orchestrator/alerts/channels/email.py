"""E-mail, in plain text."""

from orchestrator.alerts.channels.message import Message, Outgoing


def form(message: Message) -> Outgoing:
    lines = [f"{line.text}\n{line.url}\n" for line in message.lines]
    ending = "A channel of your team in Pitwall sends this; its settings can be changed there."
    return Outgoing(body="\n".join([*lines, "-- ", ending, ""]), content_type="text/plain")
