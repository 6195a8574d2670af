"""The form that creates a report of one table, and the form for a report's text."""

from collections.abc import Iterator, Sequence
from typing import Any

from django import forms

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.histories.histories import load_history_choices
from orchestrator.reports.report_builder import list_dimensions
from orchestrator.reports.report_spec import (
    DEFAULT_STATISTIC,
    MAX_PROSE,
    ReportSpec,
    from_data,
)
from orchestrator.web.forms import BenchmarkChoiceForm, TeamForm, build_benchmark_key

ROWS = 4
ACROSS = 2
METRICS = 3
STATISTICS = (
    ("mean", "geometric mean of the runs"),
    ("median", "median of the runs"),
    ("min", "lowest trial"),
    ("max", "highest trial"),
    ("merged", "of all requests of all trials (percentiles)"),
)
PUBLISHED = (
    ("none", "not shown"),
    ("columns", "in columns"),
    ("rows", "in separate rows"),
)


class ReportForm(BenchmarkChoiceForm):
    """Choose dimensions and metrics; fields left empty get the defaults of the benchmark."""

    row = forms.MultipleChoiceField(required=False, label="Rows")
    across = forms.MultipleChoiceField(required=False, label="Columns")
    metric = forms.CharField(
        required=False,
        max_length=200,
        label="Metrics",
        help_text="One or several, separated by commas; percentiles such as latency.p99.5.",
        widget=forms.TextInput(attrs={"list": "metrics", "spellcheck": "false"}),
    )
    statistic = forms.ChoiceField(choices=STATISTICS, required=False)
    cases = forms.CharField(
        required=False,
        max_length=2000,
        label="Only cases where",
        help_text='Such as: protocol == "h2" and size in ("full", "huge")',
        widget=forms.TextInput(attrs={"spellcheck": "false"}),
    )
    commit = forms.CharField(
        required=False,
        max_length=200,
        help_text="Commit, branch or tag; or newest, all (of the measured commits).",
        widget=forms.TextInput(attrs={"placeholder": "newest", "spellcheck": "false"}),
    )
    host = forms.MultipleChoiceField(
        required=False, label="Hosts", widget=forms.CheckboxSelectMultiple
    )
    published = forms.ChoiceField(choices=PUBLISHED, required=False, label="Reference results")
    best = forms.BooleanField(required=False, label="Best first, with ranks")
    against = forms.ChoiceField(required=False, label="Change against host")
    relative = forms.BooleanField(required=False, label="Change against the baseline case")

    def __init__(self, member: Member, benchmark: Benchmark, *args: Any, **kwargs: Any) -> None:
        super().__init__(member, *args, **kwargs)
        self.chosen = benchmark
        choices = load_history_choices(member, benchmark)
        self.metrics = [(each.key, each.title) for each in choices.metrics]
        self.dimensions = list_dimensions(benchmark)
        named = [(name, name.replace("_", " ")) for name in self.dimensions]
        fields: dict[str, Any] = self.fields
        fields["row"].choices = named
        fields["across"].choices = named
        hosts = [(host.name, host.name) for host in choices.hosts]
        fields["host"].choices = hosts
        fields["against"].choices = [("", "–"), *hosts]

    def slots(self, name: str, count: int) -> list[tuple[int, str]]:
        """Return the chosen values of a field that is shown as several lists."""
        chosen: Sequence[str] = [each for each in (self[name].value() or []) if each]
        return [(place + 1, chosen[place] if place < len(chosen) else "") for place in range(count)]

    def row_slots(self) -> list[tuple[int, str]]:
        return self.slots("row", ROWS)

    def across_slots(self) -> list[tuple[int, str]]:
        return self.slots("across", ACROSS)

    def spec(self) -> ReportSpec:
        """Return the report of the form. Raise InvalidRequestError as for a report's text."""
        data = self.cleaned_data
        values = [self._column(key, data) for key in self._metrics(data)]
        columns = [*values, *self._changes(values, data)]
        across = data["across"]
        rows = [name for name in dict.fromkeys(data["row"]) if name not in across]
        table: dict[str, Any] = {"rows": rows or self._usual_rows(across), "columns": columns}
        if data.get("best") and not across:
            table["sort"] = columns[0]["title"]
        options = {
            "commit": data["commit"].strip() or "newest",
            "hosts": data["host"],
            "cases": data["cases"],
            "published": data["published"] or "none",
        }
        return from_data(
            {
                "version": 1,
                "title": self.chosen.title,
                "benchmark": build_benchmark_key(self.chosen),
                **options,
                "tables": [table],
            }
        )

    def _metrics(self, data: dict[str, Any]) -> list[str]:
        parts = [key.strip() for key in data["metric"].split(",")]
        keys = list(dict.fromkeys(key for key in parts if key))
        return keys or [next((key for key, _ in self.metrics), "requests.rate")]

    def _column(self, key: str, data: dict[str, Any]) -> dict[str, Any]:
        titles = dict(self.metrics)
        statistic = data["statistic"] or DEFAULT_STATISTIC
        column: dict[str, Any] = {"metric": key, "statistic": statistic, "across": data["across"]}
        return {**column, "title": titles.get(key, key)}

    def _changes(
        self, values: Sequence[dict[str, Any]], data: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Yield columns of changes; metrics with the same reference share one entry."""
        if data.get("relative"):
            for column in values:
                yield {**column, "relative": True, "title": f"{column['title']}, change"}
        if host := data.get("against"):
            for column in values:
                title = f"{column['title']}, against {host}"
                yield {**column, "relative": True, "against": host, "title": title}

    def _usual_rows(self, across: Sequence[str]) -> list[str]:
        axes = [name for name in self.dimensions if name not in across]
        return axes[:1] or ["host"]


class ReportTextForm(TeamForm):
    name = forms.CharField(
        required=False,
        max_length=60,
        help_text="Used in the URL: lower-case letters, digits and dashes.",
    )
    source = forms.CharField(
        strip=False,
        label="Report (YAML)",
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "class": "code"}),
    )


class ReportEditForm(ReportTextForm):
    """The text in Markdown has a separate field, because it is hard to edit in YAML."""

    prose = forms.CharField(
        required=False,
        max_length=MAX_PROSE,
        label="Text (Markdown)",
        help_text="Shown above the tables. HTML is not supported.",
        widget=forms.Textarea(attrs={"rows": 10}),
    )


class VisibilityForm(TeamForm):
    hardware = forms.BooleanField(
        required=False,
        label="Hardware: CPU, cores, memory, operating system and kernel of each machine",
    )
    published = forms.BooleanField(
        required=False, label="Reference results: published figures that the team imported"
    )
