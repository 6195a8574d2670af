"""Forms of benchmarks and their definitions, and the initial definition of a new one."""

from textwrap import dedent
from typing import Any

from django import forms
from django.conf import settings
from django.urls import reverse

from orchestrator.benchmarks.selectors import load_projects
from orchestrator.web.forms import TeamForm

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


def build_example() -> str:
    """Return a definition with a line that makes editors check it against our schema."""
    schema = settings.BASE_URL + reverse("definition-schema")
    return f"# yaml-language-server: $schema={schema}\n{DEFINITION}"


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


class BenchmarkForm(DefinitionForm):
    project = forms.ChoiceField()
    slug = forms.CharField(max_length=60, label="Short name", help_text="Such as hello-world.")
    field_order = ("project", "slug", "source")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(project.slug, project.name) for project in load_projects(self.member)]
        self.fields["project"].choices = choices  # type: ignore[attr-defined]
