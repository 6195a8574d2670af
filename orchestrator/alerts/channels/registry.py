"""The kinds of channels with their formats."""

from collections.abc import Callable, Mapping

from orchestrator.alerts.channels import email, matrix, slack, teams, webhook
from orchestrator.alerts.channels.message import Message, OutgoingRequest
from orchestrator.alerts.models import ChannelKind

FORMS: Mapping[str, Callable[[Message], OutgoingRequest]] = {
    ChannelKind.WEBHOOK: webhook.build_request,
    ChannelKind.EMAIL: email.build_request,
    ChannelKind.SLACK: slack.build_request,
    ChannelKind.TEAMS: teams.build_request,
    ChannelKind.MATRIX: matrix.build_request,
}
