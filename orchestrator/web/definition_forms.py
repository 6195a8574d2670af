"""Forms of projects, benchmarks and their definitions."""

from typing import Any

from django import forms

from orchestrator.benchmarks.selectors import projects_of
from orchestrator.web.forms import TeamForm


class RepositoryForm(TeamForm):
    repository_url = forms.CharField(
        max_length=500, label="Repository", help_text="https://… or git@host:path."
    )
    default_branch = forms.CharField(max_length=200, initial="main")


class ProjectForm(RepositoryForm):
    slug = forms.SlugField(max_length=60, label="Short name", help_text="Used in addresses.")
    name = forms.CharField(max_length=100, required=False)
    field_order = ("slug", "name")


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
        choices = [(project.slug, project.name) for project in projects_of(self.member)]
        self.fields["project"].choices = choices  # type: ignore[attr-defined]


class ImportForm(TeamForm):
    """A file of the repository that becomes a benchmark."""

    path = forms.CharField(max_length=200)
    slug = forms.CharField(max_length=60, required=False)
    ref = forms.CharField(max_length=200, required=False)
