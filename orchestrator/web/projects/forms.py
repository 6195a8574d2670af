"""Forms of projects: repository, access, secrets, retention, change rules."""

from typing import Any

from django import forms

from agents.hostagent.protocol import SHORTEST_SECRET
from orchestrator.benchmarks.git_access import TOKEN_USER
from orchestrator.benchmarks.services import check_slug
from orchestrator.results.models import Retention
from orchestrator.retention.settings import MOST_DAYS, MOST_EVERY, RetentionSettings
from orchestrator.web.forms import ShortNameField, TeamForm

RETENTION_FIELDS = ("files_days", "distributions_days", "trials_days", "points_days", "keep_every")


class DaysField(forms.IntegerField):
    def __init__(self, label: str, help_text: str) -> None:
        super().__init__(
            required=False, min_value=1, max_value=MOST_DAYS, label=label, help_text=help_text
        )


class RetentionForm(TeamForm):
    """An empty number of days means that data is kept forever."""

    files_days = DaysField(
        "Raw output: days", "Files and logs of single trials. Empty: keep forever."
    )
    distributions_days = DaysField(
        "Latency distributions of single trials: days",
        "Then merged into one per commit, case and host. Empty: keep forever.",
    )
    trials_days = DaysField(
        "Single trials: days", "Then only the points of histories remain. Empty: keep forever."
    )
    points_days = DaysField(
        "All points: days", "Then only points of every n-th commit remain. Empty: keep forever."
    )
    keep_every = forms.IntegerField(
        required=False,
        min_value=2,
        max_value=MOST_EVERY,
        label="Then keep every n-th commit",
        help_text="Merges, tags, pinned commits and the ends of changes remain too.",
    )

    def build_retention(self) -> RetentionSettings:
        return RetentionSettings(**{name: self.cleaned_data[name] for name in RETENTION_FIELDS})


def build_initial_retention(retention: Retention) -> dict[str, int | None]:
    """Return the form's values for the present settings."""
    return {name: getattr(retention, name) for name in RETENTION_FIELDS}


class PinForm(TeamForm):
    """Pins a commit, which is then kept forever."""

    ref = forms.CharField(max_length=200, label="Commit", help_text="A hash, a branch or a tag.")
    reason = forms.CharField(max_length=200, help_text="Such as: baseline release.")


class ChangeRulesForm(TeamForm):
    confirm = forms.BooleanField(
        required=False, label="Confirm suspected changes before raising alerts"
    )
    bisect = forms.BooleanField(required=False, label="Bisect confirmed regressions")
    machine_minutes_a_day = forms.IntegerField(
        min_value=0,
        max_value=144_000,
        label="Machine time per day in minutes",
        help_text="Sum of all hosts, from midnight to midnight, UTC.",
    )


class RepositoryForm(TeamForm):
    repository_url = forms.CharField(
        max_length=500, label="Repository", help_text="https://… or git@host:path."
    )
    default_branch = forms.CharField(max_length=200, initial="main")


class ProjectChangeForm(RepositoryForm):
    name = forms.CharField(max_length=100)
    field_order = ("name",)


class ProjectForm(RepositoryForm):
    slug = ShortNameField(
        check=check_slug, max_length=60, label="Short name", help_text="Used in URLs."
    )
    name = forms.CharField(max_length=100, required=False)
    field_order = ("slug", "name")


class ImportForm(TeamForm):
    """A file of the repository that becomes a benchmark."""

    path = forms.CharField(max_length=200)
    slug = forms.CharField(max_length=60, required=False)
    ref = forms.CharField(max_length=200, required=False)


class HiddenTextarea(forms.Textarea):
    """Shows nothing that was sent: like a password field, but for several lines."""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        return super().get_context(name, None, attrs)


class SecretValueForm(TeamForm):
    value = forms.CharField(
        strip=False,
        help_text=f"At least {SHORTEST_SECRET} characters; line breaks are kept.",
        widget=HiddenTextarea(attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off"}),
    )

    def clean_value(self) -> str:
        """Browsers send line breaks as CRLF."""
        value: str = self.cleaned_data["value"]
        return value.replace("\r\n", "\n")


class NewSecretForm(SecretValueForm):
    name = forms.CharField(
        max_length=64,
        help_text="Letters, digits and _, such as STRIPE_KEY.",
        widget=forms.TextInput({"spellcheck": "false", "autocomplete": "off"}),
    )
    field_order = ("name", "value")


class AccessTokenForm(TeamForm):
    token = forms.CharField(
        max_length=500,
        label="Access token",
        help_text="Read access to the repository is sufficient. It is stored encrypted and "
        "never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    username = forms.CharField(
        required=False,
        max_length=100,
        label="User name",
        help_text=f"Empty: {TOKEN_USER}, which GitHub, GitLab and Gitea accept with any token.",
        widget=forms.TextInput({"spellcheck": "false", "autocomplete": "off"}),
    )
