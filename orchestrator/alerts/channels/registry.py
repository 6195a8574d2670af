"""The kinds of channels with their formats."""

from collections.abc import Callable, Mapping

from orchestrator.alerts.channels import email, matrix, slack, teams, webhook
from orchestrator.alerts.channels.message import Message, Outgoing
from orchestrator.alerts.models import ChannelKind

FORMS: Mapping[str, Callable[[Message], Outgoing]] = {
    ChannelKind.WEBHOOK: webhook.form,
    ChannelKind.EMAIL: email.form,
    ChannelKind.SLACK: slack.form,
    ChannelKind.TEAMS: teams.form,
    ChannelKind.MATRIX: matrix.form,
}
