"""The kinds of channels with their formats."""

from collections.abc import Callable, Mapping

from orchestrator.alerts.channels import email, matrix, slack, teams, webhook
from orchestrator.alerts.channels.message import Message, OutgoingRequest
from orchestrator.alerts.models import ChannelKind

FORMS: Mapping[str, Callable[[Message], OutgoingRequest]] = {
    ChannelKind.WEBHOOK: webhook.format_message,
    ChannelKind.EMAIL: email.format_message,
    ChannelKind.SLACK: slack.format_message,
    ChannelKind.TEAMS: teams.format_message,
    ChannelKind.MATRIX: matrix.format_message,
}
