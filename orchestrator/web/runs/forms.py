"""Fields of the form of runs and schedules."""

import re
from typing import Any

from django import forms

from orchestrator.benchmarks.selectors import load_benchmark
from orchestrator.benchmarks.spec import MAX_BUILDS
from orchestrator.runs.new_commits import load_newest_tagged
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.schedules import NewSchedule
from orchestrator.runs.wait_limits import MOST_WAIT_LIMIT_S
from orchestrator.stats.first_places import DEFAULT_PLACES, MOST_PLACES
from orchestrator.web.runs.case_grid import CaseChoice, load_case_choice
from orchestrator.web.runs.measurement_form import MeasurementForm
from orchestrator.web.runs.placements import PlacementsField

#: The fields that are always visible; all others are below "More options".
VISIBLE = frozenset({"benchmark", "baseline", "contender", "hosts", "rounds", "default_branch"})


class ScheduleFields(forms.Form):
    """When it starts. A schedule requires the field of its kind; each has a sensible default."""

    when = forms.ChoiceField(
        required=False,
        label="Start",
        initial="now",
        widget=forms.RadioSelect,
        choices=[
            ("now", "Now, once"),
            ("nightly", "Every night"),
            ("cron", "At the times of a cron expression"),
            ("commits", "For each new commit on a branch"),
            ("tags", "For each new tag"),
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
        help_text="Five fields, in UTC: 0 3 * * 1-5 is 03:00 on weekdays.",
    )
    branch = forms.CharField(
        max_length=200,
        required=False,
        help_text="Checked every minute. Each new commit is compared with the baseline, or with "
        "its parent.",
    )
    tags = forms.CharField(
        max_length=200,
        required=False,
        label="Tags that match",
        help_text="A pattern, such as v2.*, or * for all tags. Checked every minute.",
    )
    name = forms.CharField(
        max_length=100,
        required=False,
        label="Name of the schedule",
        help_text="Empty: named after the benchmark and the times.",
    )


class RunForm(MeasurementForm, ScheduleFields):
    renamed = {
        "budget_s": "budget",
        "wait_limit_s": "wait_limit",
        "contenders": "contender",
        "baseline_ref": "baseline",
        "contender_ref": "contender",
    }

    place_fields = ("hosts", "placements")

    baseline = forms.CharField(
        max_length=200,
        required=False,
        help_text="Branch, tag or commit to compare with. Empty: the parent of the contender.",
    )
    contender = forms.CharField(
        max_length=200,
        required=False,
        help_text="Branch, tag or commit to test. Empty: only the baseline is measured.",
    )
    default_branch = forms.CharField(
        max_length=200, required=False, widget=forms.HiddenInput, label="Default branch"
    )
    second_contender = forms.CharField(
        max_length=200, required=False, help_text="Optional: measured in the same rounds."
    )
    pairwise = forms.BooleanField(
        required=False, label="Fewer cases: each pair of values at least once"
    )
    until = forms.ChoiceField(
        required=False,
        label="Stopping rule",
        initial="rounds",
        widget=forms.RadioSelect,
        choices=[
            ("rounds", "After a fixed number of rounds"),
            ("resolution", "After enough rounds to detect changes of a given size"),
            ("decided", "When each case is decided"),
            (
                "screened",
                "When each case is decided, or after 7 rounds without a sign of a change",
            ),
            ("compared", "When each value of a contest is decided"),
            ("ranked", "When the order of the first places of a contest is decided"),
        ],
    )
    resolution = forms.FloatField(
        required=False,
        min_value=0.01,
        max_value=100,
        initial=2,
        label="Detect changes of at least, %",
        help_text="The number of rounds is computed from the noise of the selected hosts.",
    )
    first_places = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_PLACES,
        label="First places",
        help_text=f"Empty: {DEFAULT_PLACES}. Values that are surely behind them end early.",
    )
    builds = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_BUILDS,
        label="Builds of each commit",
        help_text="Two rounds measure each build. Several builds separate the difference between "
        "builds from a change of the code; 5 or more are best.",
    )
    budget = forms.FloatField(
        required=False,
        min_value=0.01,
        label="Budget, minutes",
        help_text="Machine time of all hosts together; trials beyond it are skipped. "
        "Empty: no limit.",
    )
    wait_limit = forms.FloatField(
        required=False,
        min_value=0.1,
        max_value=MOST_WAIT_LIMIT_S / 3600,
        label="Wait limit, hours",
        help_text="Jobs that still wait in the queue after this time fail, for example because a "
        "host is off. Empty: a week.",
    )
    priority = forms.ChoiceField(
        choices=[
            ("background", "Background"),
            ("low", "Low"),
            ("normal", "Normal"),
            ("high", "High"),
        ],
        initial="normal",
        required=False,
        help_text="Higher priority runs start first. Waiting raises the priority, except of "
        "Background.",
    )
    generator = forms.ChoiceField(
        required=False, label="Load from", help_text="Where the load tool runs."
    )
    backend = forms.ChoiceField(
        required=False, label="Services on", help_text="For definitions with services."
    )
    placements = PlacementsField(
        required=False,
        label="Further placements",
        help_text="One placement per line, with a host for each role: target=rack-1 "
        "generator=tag:load",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        elsewhere = [("", "the same host"), *self._list_grouped_places()]
        self._field("generator").choices = elsewhere
        self._field("backend").choices = elsewhere
        self.choice: CaseChoice | None = load_case_choice(self.member, self._benchmark_key())
        if self.choice is not None and self.is_bound:
            self.choice.take(self.data)
        elif self.choice is not None and self.initial.get("cases"):
            self.initial["cases"] = self.choice.show(self.initial["cases"])
        if self.choice is not None:
            self._field("rounds").help_text = (
                f"Empty: {self.choice.spec.rounds}, as in the definition, or at most 20 until "
                "decided. A verdict needs at least 5."
            )

    @property
    def has_options(self) -> bool:
        """Return whether a field below "More options" has an error, or not its default value."""
        names = self.fields.keys() - VISIBLE - {"resolution", "at", "branch"}
        usual = {name: (None, "", False, self.fields[name].initial) for name in names}
        choice = self.choice
        return (
            bool(self.errors.keys() - VISIBLE)
            or any(self[name].value() not in usual[name] for name in names)
            or (choice is not None and choice.picked != choice.grid.everything)
        )

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        self._clean_cases(data)
        if data.get("until") == "resolution" and not data.get("resolution"):
            self._missing("resolution", "Enter the change to detect, such as 2.")
        self._clean_start(data)
        later = data.get("when") not in (None, "", "now")
        if later and data.get("until") == "ranked" and data.get("first_places"):
            self.add_error(
                "first_places", f"A schedule orders the first {DEFAULT_PLACES}: leave it empty."
            )
        return data

    @property
    def starts(self) -> str:
        """Return one of the choices of `when`; now if the form does not send the field."""
        return self.cleaned_data.get("when") or "now"

    @property
    def wanted_change(self) -> float | None:
        """Return the wanted change as a share, if it determines the rounds."""
        data = self.cleaned_data
        return data["resolution"] / 100 if data["until"] == "resolution" else None

    def build_request(self) -> RunRequest:
        """For a schedule of a branch, this is the run of its latest commit."""
        data = self.cleaned_data
        project, benchmark = self.split_benchmark()
        contenders = [data["contender"], data["second_contender"]]
        if self.starts == "commits":
            contenders = [data["branch"]]
        elif self.starts == "tags":
            contenders = [self._find_newest_tagged(project, benchmark)]
        return RunRequest(
            project=project,
            benchmark=benchmark,
            baseline=data["baseline"],
            contenders=tuple(ref for ref in contenders if ref),
            cases=data["cases"],
            pairwise=data["pairwise"],
            hosts=self.list_hosts(),
            placements=self.build_placements(),
            priority=data["priority"] or "normal",
            builds=data["builds"],
            **self._ending(),
        )

    def build_schedule(self) -> NewSchedule:
        data = self.cleaned_data
        request = self.build_request()
        by_branch, by_tags = self.starts == "commits", self.starts == "tags"
        follows = by_branch or by_tags
        return NewSchedule(
            name=data["name"] or self._usual_name(),
            cron="" if follows else data["cron"],
            branch=data["branch"] if by_branch else "",
            tags=data["tags"] if by_tags else "",
            benchmark=request.benchmark,
            project=request.project,
            baseline_ref=request.baseline,
            contender_ref="" if follows else data["contender"],
            second_contender_ref="" if follows else data["second_contender"],
            cases=request.cases,
            pairwise=request.pairwise,
            hosts=request.hosts,
            placements=request.placements,
            rounds=request.rounds,
            builds=request.builds,
            resolution=self.wanted_change,
            until=request.until,
            budget_s=request.budget_s,
            wait_limit_s=request.wait_limit_s,
            priority=request.priority,
        )

    def _find_newest_tagged(self, project: str, benchmark: str) -> str:
        loaded = load_benchmark(self.member, benchmark, project)
        return load_newest_tagged(loaded.project, self.cleaned_data["tags"])

    def build_placements(self) -> tuple[dict[str, str], ...]:
        """Return a host for each role of each placement; all combinations of chosen hosts."""
        data = self.cleaned_data
        others = {role: data[role] for role in ("generator", "backend") if data[role]}
        chosen = [{"target": host, **others} for host in data["hosts"]] if others else []
        return (*chosen, *data["placements"])

    def list_hosts(self) -> tuple[str, ...]:
        """Return the hosts that play all roles."""
        data = self.cleaned_data
        return () if data["generator"] or data["backend"] else tuple(data["hosts"])

    def show_error(self, error: Exception, default: str | None = None) -> None:
        """Show an error at the form field of the part of the request that it names."""
        named = getattr(error, "field", None) or ""
        if named == "contenders" and self.starts in ("commits", "tags"):
            self.add_error("branch" if self.starts == "commits" else "tags", str(error))
            return
        match = re.match(r"placements\[(\d+)\](?:\.(\w+))?", named)
        if match is None:
            super().show_error(error, default)
            return
        number, role = int(match[1]), match[2] or "target"
        written = number >= len(self.build_placements()) - len(self.cleaned_data["placements"])
        field = "placements" if written else "hosts" if role == "target" else role
        self.add_error(field, str(error))

    def _ending(self) -> dict[str, Any]:
        data = self.cleaned_data
        minutes, computed = data["budget"], self.wanted_change is not None
        hours = data["wait_limit"]
        return {
            "rounds": None if computed else data["rounds"],
            "until": "rounds" if computed else data["until"] or "rounds",
            "places": data["first_places"] if data["until"] == "ranked" else None,
            "budget_s": None if minutes is None else 60 * minutes,
            "wait_limit_s": None if hours is None else 3600 * hours,
        }

    def _clean_cases(self, data: dict[str, Any]) -> None:
        if self.choice is None or "cases" not in data:
            return
        try:
            data["cases"] = self.choice.expression(data["cases"])
        except forms.ValidationError as error:
            self.add_error("cases", error)

    def _clean_start(self, data: dict[str, Any]) -> None:
        """The times of a schedule become a cron expression, whichever field contains them."""
        when = data.get("when") or "now"
        if when == "nightly" and data.get("at"):
            data["cron"] = f"{data['at'].minute} {data['at'].hour} * * *"
        elif when == "nightly":
            self._missing("at", "Enter a time, such as 03:00.")
        elif when == "cron" and not data.get("cron"):
            self._missing("cron", "Enter a cron expression, such as 0 3 * * *.")
        elif when == "commits" and not data.get("branch"):
            self._missing("branch", "Enter a branch, such as main.")
        elif when == "tags" and not data.get("tags"):
            self._missing("tags", "Enter a pattern of tags, such as v2.*, or * for all.")

    def _missing(self, field: str, problem: str) -> None:
        if field not in self.errors:
            self.add_error(field, problem)

    def _usual_name(self) -> str:
        data = self.cleaned_data
        _, slug = self.split_benchmark()
        times = {"nightly": f"nightly at {data['at']:%H:%M}"} if data["at"] else {}
        words = {**times, "cron": f"at {data['cron']}", "commits": f"on {data['branch']}"}
        words["tags"] = f"on tags {data['tags']}"
        return f"{slug} {words[self.starts]}"

    def _list_grouped_places(self) -> list[tuple[str, list[tuple[str, str]]]]:
        return [
            (title, [(place.value, place.title) for place in places])
            for title, places in self._group_places()
        ]

    def _benchmark_key(self) -> str:
        given = self["benchmark"].value()
        if given:
            return str(given)
        # The value that a browser preselects.
        choices = self._field("benchmark").choices
        return str(choices[0][0]) if choices else ""
