"""Forms of benchmarks and their definitions, and the initial definition of a new one."""

from textwrap import dedent
from typing import Any

from django import forms
from django.conf import settings
from django.urls import reverse

from orchestrator.benchmarks.selectors import load_projects
from orchestrator.benchmarks.services import check_slug
from orchestrator.runs.availability import HostAvailability, load_choices
from orchestrator.web.forms import ShortNameField, TeamForm

DEFINITION = dedent(
    """\
    version: 1
    title: Hello, world
    subject:
      build: []
      start: ["{python}", "server.py", "--bind", "{bind}", "--port", "{port}"]
      ready: {path: /, status: 200, timeout_s: 10}
    load:
      tool: oha
      path: /
      connections: "{connections}"
      duration_s: 30
      warmup_s: 10
    matrix:
      connections: [10, 50]
    rounds: 7
    """
)


def build_default_text() -> str:
    return f"{build_schema_line()}{DEFINITION}"


def build_schema_line() -> str:
    """Return the line that makes editors check a definition against our schema."""
    schema = settings.BASE_URL + reverse("definition-schema")
    return f"# yaml-language-server: $schema={schema}\n"


class DefinitionForm(TeamForm):
    source = forms.CharField(
        strip=False,
        label="Definition (YAML)",
        widget=forms.Textarea(
            attrs={
                "rows": 28,
                "class": "code",
                "spellcheck": "false",
                "autocapitalize": "off",
                "aria-describedby": "id_source_error",
            }
        ),
    )


class TrialForm(DefinitionForm):
    """A definition, and the host for one trial of it."""

    # No ChoiceField: a host that was put into maintenance since must not prevent saving.
    host = forms.CharField(required=False, max_length=60, label="Try it on", widget=forms.Select)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [
            place.value
            for place in load_choices(self.member)
            if place.kind == "host" and place.hosts[0].now != HostAvailability.HELD
        ]
        self.fields["host"].widget.choices = [(name, name) for name in names]

    def show_error(self, error: Exception, default: str | None = None) -> None:
        """Show an error at its field; one of a part of the definition at its text."""
        super().show_error(error, default or "source")


class BenchmarkForm(TrialForm):
    project = forms.ChoiceField()
    slug = ShortNameField(
        check=check_slug, max_length=60, label="Short name", help_text="Such as hello-world."
    )
    field_order = ("project", "slug", "source")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(project.slug, project.name) for project in load_projects(self.member)]
        self.fields["project"].choices = choices  # type: ignore[attr-defined]
