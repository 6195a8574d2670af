"""The fields of all forms that start measurements: benchmark, hosts, cases and rounds."""

from collections.abc import Mapping
from typing import Any

from django import forms

from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.runs.availability import Choice, HostAvailability, load_choices, load_refusals
from orchestrator.web.forms import BenchmarkChoiceForm

_PLACE_KINDS = {"host": "Hosts", "profile": "Any host of a profile", "tag": "Any host with a tag"}


class HostsField(forms.MultipleChoiceField):
    """`refusals`: why some hosts cannot be chosen, by name."""

    widget = forms.CheckboxSelectMultiple
    default_error_messages = {"invalid_choice": "There is no host %(value)s."}
    refusals: Mapping[str, str] = {}

    def validate(self, value: list[str]) -> None:
        for name in value:
            if name in self.refusals and not self.valid_value(name):
                raise forms.ValidationError(self.refusals[name])
        super().validate(value)


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


class MeasurementForm(BenchmarkChoiceForm):
    hosts = HostsField(required=False)
    cases = CasesField()
    rounds = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_ROUNDS,
        help_text="Empty: the number in the definition.",
    )

    #: Fields that name hosts; at least one of them is required.
    place_fields: tuple[str, ...] = ("hosts",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.places = load_choices(self.member)
        self.refusals = load_refusals(self.member)
        hosts = self._field("hosts")
        hosts.choices = [(place.value, place.title) for place in self.places]
        hosts.refusals = self.refusals

    def preselect_host(self) -> None:
        """Choose the only host that can measure now, if no usable place is chosen yet."""
        places = {place.value for place in self.places if place.usable}
        given = {str(name) for name in self.initial.get("hosts") or ()}
        ready = [
            place.value
            for place in self.places
            if place.kind == "host" and place.hosts[0].now != HostAvailability.HELD
        ]
        if len(ready) == 1 and not given & places and not self.initial.get("placements"):
            self.initial["hosts"] = [*given, *ready]

    @property
    def refused_hosts(self) -> list[str]:
        """Return why hosts that the address names cannot be chosen."""
        if self.is_bound:
            return []
        names = self.initial.get("hosts") or ()
        return [self.refusals[name] for name in names if name in self.refusals]

    def place_groups(self) -> list[tuple[str, list[tuple[Choice, bool]]]]:
        """Return the possible places by kind, each with whether it is chosen."""
        chosen = self["hosts"].value() or []
        return [
            (title, [(place, place.value in chosen) for place in places])
            for title, places in self._group_places()
        ]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        places = set(self.place_fields)
        if not places & set(self.errors) and not any(data.get(name) for name in places):
            self.add_error("hosts", "Choose at least one host.")
        return data

    def _group_places(self) -> list[tuple[str, list[Choice]]]:
        """Return the places by kind; kinds without any are omitted."""
        groups = [
            (title, [place for place in self.places if place.kind == kind])
            for kind, title in _PLACE_KINDS.items()
        ]
        return [(title, places) for title, places in groups if places]
