"""The form of a backfill."""

from django import forms

from orchestrator.runs.backfills import BackfillRequest
from orchestrator.runs.earlier_commits import MOST_LOOKED_AT, CommitSelection, CommitSource
from orchestrator.web.runs.measurement_form import MeasurementForm


class BackfillForm(MeasurementForm):
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
    again = forms.BooleanField(
        required=False,
        label="Also commits that are measured already, or failed in an earlier backfill",
    )

    def build_request(self) -> BackfillRequest:
        data = self.cleaned_data
        project, benchmark = self.split_benchmark()
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
