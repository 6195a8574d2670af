"""Forms of how long a project keeps what was measured, and of what it keeps for ever."""

from django import forms

from orchestrator.results.models import Retention
from orchestrator.retention.settings import MOST_DAYS, MOST_EVERY, Wanted
from orchestrator.web.forms import TeamForm

NAMES = ("files_days", "distributions_days", "trials_days", "points_days", "keep_every")


class DaysField(forms.IntegerField):
    def __init__(self, label: str, help_text: str) -> None:
        super().__init__(
            required=False, min_value=1, max_value=MOST_DAYS, label=label, help_text=help_text
        )


class RetentionForm(TeamForm):
    """Empty days are for ever."""

    files_days = DaysField("Raw output: days", "Files and logs of single trials. Empty: for ever.")
    distributions_days = DaysField(
        "Latency distributions of single trials: days",
        "Then merged into one for each commit, case and host. Empty: for ever.",
    )
    trials_days = DaysField(
        "Single trials: days", "Then only the points of histories stay. Empty: for ever."
    )
    points_days = DaysField(
        "All points: days", "Then only those of every n-th commit stay. Empty: for ever."
    )
    keep_every = forms.IntegerField(
        required=False,
        min_value=2,
        max_value=MOST_EVERY,
        label="Then keep every n-th commit",
        help_text="Merges, tags, what is kept for ever and the ends of changes stay as well.",
    )

    def wanted(self) -> Wanted:
        return Wanted(**{name: self.cleaned_data[name] for name in NAMES})


def initial_of(retention: Retention) -> dict[str, int | None]:
    """What the form shows of the settings that hold."""
    return {name: getattr(retention, name) for name in NAMES}


class PinForm(TeamForm):
    """A commit that is kept for ever."""

    ref = forms.CharField(max_length=200, label="Commit", help_text="A hash, a branch or a tag.")
    reason = forms.CharField(max_length=200, help_text="Such as: the release that we compare with.")
