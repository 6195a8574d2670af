"""The form that connects a project with its forge."""

from typing import Any

from django import forms

from orchestrator.forges.models import Connection, ForgeKind
from orchestrator.forges.services import MOST_BUDGET, NewConnection
from orchestrator.web.forms import TeamForm

_PLAIN = {"spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}


class ForgeForm(TeamForm):
    kind = forms.ChoiceField(choices=ForgeKind.choices, label="Forge")
    repository = forms.CharField(
        max_length=200, help_text="As in its URL: owner/name.", widget=forms.TextInput(_PLAIN)
    )
    api_url = forms.CharField(
        required=False,
        max_length=300,
        label="Address of its API",
        help_text="Empty for github.com and gitlab.com; else such as "
        "https://git.example.org/api/v1 (Gitea), …/api/v4 (GitLab), …/api/v3 (GitHub Enterprise).",
        widget=forms.TextInput(_PLAIN),
    )
    token = forms.CharField(
        required=False,
        max_length=500,
        help_text="To read pull requests, write comments and set commit statuses. Empty: keep what "
        "is stored; without one Pitwall only listens for pushes.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    allowed_users = forms.CharField(
        required=False,
        max_length=2000,
        label="Users who may request benchmarks",
        help_text="User names on the forge, separated by commas.",
        widget=forms.TextInput(_PLAIN),
    )
    hosts = forms.CharField(
        required=False,
        max_length=1000,
        label="Hosts to measure on",
        help_text="Names, profile:NAME or tag:NAME, separated by commas.",
        widget=forms.TextInput(_PLAIN),
    )
    budget_minutes = forms.IntegerField(
        min_value=1,
        max_value=MOST_BUDGET,
        initial=60,
        label="Machine time per request in minutes",
        help_text="Sum of all hosts. Cases that are decided earlier end earlier.",
    )

    def build_new_connection(self) -> NewConnection:
        data = self.cleaned_data
        return NewConnection(
            kind=data["kind"],
            repository=data["repository"].strip().strip("/"),
            api_url=data["api_url"].strip(),
            token=data["token"].strip(),
            allowed_users=_split_words(data["allowed_users"]),
            hosts=_split_words(data["hosts"]),
            budget_minutes=data["budget_minutes"],
        )


def build_initial_connection(connection: Connection | None) -> dict[str, Any]:
    """Return the form's values for a connection, without its token."""
    if connection is None:
        return {}
    return {
        "kind": connection.kind,
        "repository": connection.repository,
        "api_url": connection.api_url,
        "allowed_users": ", ".join(connection.allowed_users),
        "hosts": ", ".join(connection.hosts),
        "budget_minutes": connection.budget_minutes,
    }


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(word.strip().removeprefix("@") for word in text.split(",") if word.strip())
