"""The form of what Pitwall does by itself about a suspected change."""

from django import forms

from orchestrator.web.forms import TeamForm


class ChangeRulesForm(TeamForm):
    confirm = forms.BooleanField(
        required=False, label="Measure suspected changes again before anybody is alerted"
    )
    bisect = forms.BooleanField(
        required=False, label="Search the commit that a confirmed regression comes from"
    )
    machine_minutes_a_day = forms.IntegerField(
        min_value=0,
        max_value=144_000,
        label="Minutes of machine time a day for both",
        help_text="All hosts together, from midnight to midnight, UTC.",
    )
