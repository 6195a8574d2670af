"""E-mail, in plain text."""

from orchestrator.alerts.channels.message import Message, OutgoingRequest


def build_request(message: Message) -> OutgoingRequest:
    lines = [f"{line.text}\n{line.url}\n" for line in message.lines]
    ending = (
        "This e-mail is from a channel of your team in Pitwall. "
        "Change the channel in the settings of the team."
    )
    return OutgoingRequest(body="\n".join([*lines, "-- ", ending, ""]), content_type="text/plain")
