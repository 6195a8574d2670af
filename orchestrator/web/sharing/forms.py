"""Forms about access without an account."""

from django import forms

from orchestrator.benchmarks.sharing import MOST_DAYS
from orchestrator.web.forms import TeamForm


class PublicForm(TeamForm):
    sure = forms.BooleanField(
        label="Everybody can see this project from now on",
        error_messages={"required": "Select this to make the project public."},
    )


class ShareForm(TeamForm):
    page = forms.CharField(widget=forms.HiddenInput)
    days = forms.IntegerField(
        min_value=1, max_value=MOST_DAYS, initial=30, label="Days until the link expires"
    )
