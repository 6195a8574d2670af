"""The form of a backfill."""

from typing import Any

from django import forms

from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.runs.availability import Choice, load_choices
from orchestrator.runs.backfills import BackfillRequest
from orchestrator.runs.earlier_commits import MOST_LOOKED_AT, CommitSelection, CommitSource
from orchestrator.web.forms import TeamForm, load_benchmark_choices
from orchestrator.web.runs.forms import CasesField, HostsField, group_place_choices


class BackfillForm(TeamForm):
    benchmark = forms.ChoiceField()
    source = forms.ChoiceField(
        label="Commits",
        initial=CommitSource.LAST,
        widget=forms.RadioSelect,
        choices=[
            (CommitSource.LAST, "The last commits of a branch"),
            (CommitSource.TAGS, "Tags"),
            (CommitSource.RANGE, "A range"),
        ],
    )
    branch = forms.CharField(
        max_length=200, required=False, help_text="Empty: the default branch of the project."
    )
    count = forms.IntegerField(
        min_value=1,
        max_value=MOST_LOOKED_AT,
        required=False,
        initial=20,
        label="Number of commits",
        help_text="A merge counts as one commit.",
    )
    tags = forms.CharField(
        max_length=200,
        required=False,
        initial="*",
        label="Tags that match",
        help_text="A pattern, such as v2.*. * matches any text.",
    )
    since = forms.CharField(
        max_length=200,
        required=False,
        label="First commit",
        help_text="Branch, tag or commit. The range includes it.",
    )
    until = forms.CharField(
        max_length=200,
        required=False,
        label="Last commit",
        help_text="Empty: the newest of the default branch.",
    )
    every = forms.IntegerField(
        min_value=1,
        max_value=MOST_LOOKED_AT,
        required=False,
        initial=1,
        label="Measure 1 in",
        help_text="1: each of these commits. 5: every fifth, from the newest.",
    )
    hosts = HostsField(
        required=False, error_messages={"invalid_choice": "There is no host %(value)s."}
    )
    cases = CasesField()
    rounds = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_ROUNDS,
        help_text="Empty: the number in the definition.",
    )
    again = forms.BooleanField(
        required=False,
        label="Also commits that are measured already, or failed in an earlier backfill",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.places = load_choices(self.member)
        fields: dict[str, Any] = self.fields
        fields["benchmark"].choices = load_benchmark_choices(self.member)
        fields["hosts"].choices = [(place.value, place.title) for place in self.places]
        if len(self.places) and not self.is_bound and "hosts" not in self.initial:
            self.initial["hosts"] = _find_only_host(self.places)

    def place_groups(self) -> list[tuple[str, list[tuple[Choice, bool]]]]:
        return group_place_choices(self.places, self["hosts"].value() or [])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not data.get("hosts") and "hosts" not in self.errors:
            self.add_error("hosts", "Choose at least one host.")
        return data

    def request(self) -> BackfillRequest:
        data = self.cleaned_data
        project, _, benchmark = data["benchmark"].rpartition("/")
        return BackfillRequest(
            project=project,
            benchmark=benchmark,
            selection=CommitSelection(
                source=CommitSource(data["source"]),
                branch=data["branch"],
                count=20 if data["count"] is None else data["count"],
                every=1 if data["every"] is None else data["every"],
                tags=data["tags"] or "*",
                since=data["since"],
                until=data["until"],
            ),
            hosts=tuple(data["hosts"]),
            cases=data["cases"],
            rounds=data["rounds"],
            again=data["again"],
        )


def _find_only_host(places: list[Choice]) -> list[str]:
    hosts = [place.value for place in places if place.kind == "host" and place.usable]
    return hosts if len(hosts) == 1 else []
