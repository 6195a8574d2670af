"""Forms: they check what is simple about the input; the services check what it means."""

import re
from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import benchmarks_of
from orchestrator.core.errors import ConflictError, HostError, InvalidRequestError
from orchestrator.fleet.models import UNUSABLE, Host
from orchestrator.fleet.selectors import own_hosts_of
from orchestrator.runs.availability import Choice, choices_for
from orchestrator.web.placements import PlacementsField

#: What a form shows at its fields; all else becomes an error page.
FORM_ERRORS = (InvalidRequestError, ConflictError, HostError)
PLACE_KINDS = {"host": "Hosts", "profile": "Any host of a profile", "tag": "Any host with a tag"}


class TeamForm(forms.Form):
    """A form whose choices are those of the member's team."""

    #: Names of services' fields that this form calls otherwise.
    renamed: dict[str, str] = {}

    def __init__(self, member: Member, data: Any = None, **options: Any) -> None:
        self.member = member
        super().__init__(data, label_suffix="", **options)

    @property
    def status(self) -> int:
        """The HTTP status of a page with this form."""
        return 422 if self.is_bound and self.errors else 200

    def show_error(self, error: Exception, default: str | None = None) -> None:
        """Puts a service's refusal beside the field that it names, else beside `default`."""
        named = getattr(error, "field", None) or ""
        field = self.renamed.get(named, named)
        place = field if field in self.fields else default
        self.add_error(place or NON_FIELD_ERRORS, str(error))


class HostsField(forms.MultipleChoiceField):
    widget = forms.CheckboxSelectMultiple


class MeasureForm(TeamForm):
    """What runs and schedules have in common: a benchmark, hosts, and when a run ends."""

    renamed = {"budget_s": "budget"}

    benchmark = forms.ChoiceField()
    hosts = HostsField(error_messages={"required": "Choose at least one host."})
    rounds = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=100,
        help_text="Empty: as many as the definition says, or 20 at most until decided. "
        "5 is the least for a verdict.",
    )
    until = forms.ChoiceField(
        required=False,
        label="A case is measured",
        initial="rounds",
        widget=forms.RadioSelect,
        choices=[
            ("rounds", "a fixed number of times"),
            ("decided", "until it is decided"),
            ("screened", "until it is decided, or nothing hints at a change after seven times"),
        ],
    )
    budget = forms.FloatField(
        required=False,
        min_value=0.01,
        label="Budget, minutes",
        help_text="Machine time of all hosts together; what does not fit in is skipped. "
        "Empty: no limit.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._field("benchmark").choices = benchmark_choices(self.member)
        self._field("hosts").choices = self.host_choices()

    def host_choices(self) -> list[tuple[str, str]]:
        self.host_rows = list(own_hosts_of(self.member))
        return [(host.name, host.name) for host in self.host_rows]

    def ending(self) -> dict[str, Any]:
        """What ends the run, as a request names it."""
        data = self.cleaned_data
        minutes = data["budget"]
        return {
            "rounds": data["rounds"],
            "until": data["until"] or "rounds",
            "budget_s": None if minutes is None else 60 * minutes,
        }

    def shown_hosts(self) -> list[tuple[Host, bool, bool]]:
        """Each host of the team, whether it is chosen, and whether it can be used."""
        chosen = self["hosts"].value() or []
        return [(host, host.name in chosen, host.state not in UNUSABLE) for host in self.host_rows]

    def _field(self, name: str) -> Any:
        return self.fields[name]


class CasesField(forms.CharField):
    """An expression over the parameters and labels of cases (benchmarks/choice.py)."""

    def __init__(self) -> None:
        attrs = {"spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}
        super().__init__(
            required=False,
            max_length=2000,
            widget=forms.TextInput(attrs={**attrs, "class": "code"}),
            help_text='Empty: all. Such as protocol == "h3" and size in ("full", "huge").',
        )


class PairwiseField(forms.BooleanField):
    def __init__(self) -> None:
        super().__init__(required=False, label="Fewer cases: each pair of values once at least")


class RunForm(MeasureForm):
    renamed = {**MeasureForm.renamed, "contenders": "contender"}

    baseline = forms.CharField(
        max_length=200,
        required=False,
        help_text="Branch, tag or commit to compare with. Empty: the parent of the contender.",
    )
    contender = forms.CharField(
        max_length=200,
        required=False,
        help_text="Branch, tag or commit to be judged. Empty: the baseline is measured alone.",
    )
    second_contender = forms.CharField(
        max_length=200, required=False, help_text="Optional: measured in the same rounds."
    )
    priority = forms.ChoiceField(
        choices=[("low", "Low"), ("normal", "Normal"), ("high", "High")],
        initial="normal",
        required=False,
        help_text="Who goes first where several runs wait; waiting raises it.",
    )
    cases = CasesField()
    pairwise = PairwiseField()
    hosts = HostsField(required=False)
    generator = forms.ChoiceField(
        required=False, label="Load from", help_text="Where the load tool runs."
    )
    backend = forms.ChoiceField(
        required=False, label="Services on", help_text="For definitions with services."
    )
    placements = PlacementsField(
        required=False,
        label="Further placements",
        help_text="One a line, a host for each role: target=rack-1 generator=tag:load",
    )

    def host_choices(self) -> list[tuple[str, str]]:
        self.places = choices_for(self.member)
        elsewhere = [("", "the same host"), *_grouped(self.places)]
        self._field("generator").choices = elsewhere
        self._field("backend").choices = elsewhere
        return [(place.value, place.title) for place in self.places]

    def shown_places(self) -> list[tuple[str, list[tuple[Choice, bool]]]]:
        """What may be measured on, by kind, and whether it is chosen."""
        chosen = self["hosts"].value() or []
        groups = [
            (title, [(place, place.value in chosen) for place in self.places if place.kind == kind])
            for kind, title in PLACE_KINDS.items()
        ]
        return [(title, rows) for title, rows in groups if rows]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        places = {"hosts", "placements"}
        if not places & set(self.errors) and not any(data.get(name) for name in places):
            self.add_error("hosts", "Choose at least one host.")
        return data

    def asked_placements(self) -> tuple[dict[str, str], ...]:
        """A host for each role of each placement; all that is asked for if several hosts are."""
        data = self.cleaned_data
        others = {role: data[role] for role in ("generator", "backend") if data[role]}
        chosen = [{"target": host, **others} for host in data["hosts"]] if others else []
        return (*chosen, *data["placements"])

    def asked_hosts(self) -> tuple[str, ...]:
        """The hosts that play all roles."""
        data = self.cleaned_data
        return () if data["generator"] or data["backend"] else tuple(data["hosts"])

    def show_error(self, error: Exception, default: str | None = None) -> None:
        """A complaint about a placement goes to the field that the placement was made from."""
        match = re.match(r"placements\[(\d+)\](?:\.(\w+))?", getattr(error, "field", None) or "")
        if match is None:
            return super().show_error(error, default)
        number, role = int(match[1]), match[2] or "target"
        written = number >= len(self.asked_placements()) - len(self.cleaned_data["placements"])
        field = "placements" if written else "hosts" if role == "target" else role
        self.add_error(field, str(error))


class ScheduleForm(MeasureForm):
    renamed = {
        **MeasureForm.renamed,
        "baseline_ref": "baseline",
        "contender_ref": "contender",
    }

    name = forms.CharField(max_length=100)
    cron = forms.CharField(
        max_length=100, initial="0 3 * * *", help_text="Five fields, in UTC: 0 3 * * * is 03:00."
    )
    baseline = forms.CharField(max_length=200, help_text="Such as a release tag.")
    contender = forms.CharField(
        max_length=200,
        required=False,
        help_text="Such as the branch main. Empty: the baseline is measured alone.",
    )
    cases = CasesField()
    pairwise = PairwiseField()


class TokenForm(TeamForm):
    name = forms.CharField(max_length=100, help_text="What will use it, such as “CI of server”.")


def _grouped(places: list[Choice]) -> list[tuple[str, list[tuple[str, str]]]]:
    groups = [
        (title, [(place.value, place.title) for place in places if place.kind == kind])
        for kind, title in PLACE_KINDS.items()
    ]
    return [(title, options) for title, options in groups if options]


def benchmark_choices(member: Member) -> list[tuple[str, str]]:
    return choices_among(benchmarks_of(member))


def choices_among(benchmarks: Iterable[Benchmark]) -> list[tuple[str, str]]:
    return [(benchmark_key(each), _label(each)) for each in benchmarks]


def benchmark_key(benchmark: Benchmark) -> str:
    """`project/slug`, the name of a benchmark in forms and addresses."""
    return f"{benchmark.project.slug}/{benchmark.slug}"


def _label(benchmark: Benchmark) -> str:
    return f"{benchmark.title} ({benchmark_key(benchmark)})"
