"""Fields of the form of runs and schedules that have a shape of their own."""

from django import forms


class HostsField(forms.MultipleChoiceField):
    widget = forms.CheckboxSelectMultiple


class CasesField(forms.CharField):
    """An expression over the parameters and labels of cases (benchmarks/choice.py)."""

    def __init__(self) -> None:
        attrs = {"spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}
        super().__init__(
            required=False,
            max_length=2000,
            label="Expression",
            widget=forms.TextInput(attrs={**attrs, "class": "code"}),
            help_text='Such as protocol == "h3" and size in ("full", "huge"). Empty: all.',
        )


class ScheduleFields(forms.Form):
    """When it starts; a schedule needs the field of its kind, and each has a sensible default."""

    when = forms.ChoiceField(
        required=False,
        label="Start",
        initial="now",
        widget=forms.RadioSelect,
        choices=[
            ("now", "now, once"),
            ("nightly", "every night"),
            ("cron", "at the times of a cron expression"),
            ("commits", "for each new commit on a branch"),
        ],
    )
    at = forms.TimeField(
        required=False,
        label="At, UTC",
        initial="03:00",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )
    cron = forms.CharField(
        max_length=100,
        required=False,
        label="Times",
        help_text="Five fields, in UTC: 0 3 * * 1-5 is 03:00 on working days.",
    )
    branch = forms.CharField(
        max_length=200,
        required=False,
        help_text="Looked at each minute. Each new commit is compared with the baseline, or with "
        "its parent.",
    )
    name = forms.CharField(
        max_length=100,
        required=False,
        label="Name of the schedule",
        help_text="Empty: named after the benchmark and the times.",
    )
