"""The forms that send a history of another tool, and start its import."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import PurePath
from typing import IO, Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile

from cli.pitwall.units import format_bytes
from orchestrator.accounts.members import Member
from orchestrator.benchmarks.selectors import load_projects
from orchestrator.importers.history_values import HistoryOptions
from orchestrator.importers.registry import HISTORY_FORMATS
from orchestrator.measurements.history_import import MAX_BYTES
from orchestrator.results.models import UnknownCommits
from orchestrator.web.forms import TeamForm

OPTIONS = ("format", "benchmark", "host", "commit", "better")


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or several files, as a list."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        files = data if isinstance(data, list | tuple) else [data]
        cleaned = [super(FilesField, self).clean(each, initial) for each in files or [None]]
        size = sum(each.size for each in cleaned)
        if size > MAX_BYTES:
            raise ValidationError(
                f"the files have {format_bytes(size)}; a history has at most "
                f"{format_bytes(MAX_BYTES)}. Import it in parts."
            )
        return cleaned


class HistoryForm(TeamForm):
    """Empty options: as the file says."""

    file = FilesField(
        help_text=f"At most {MAX_BYTES // 1024**2} MiB. Several result files of asv, or a .zip of "
        "its results folder, are one history.",
    )
    project = forms.ChoiceField(help_text="The commits of the file are those of its repository.")
    format = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Recognise by content"),
            *((each.name, each.title) for each in HISTORY_FORMATS.values()),
        ],
    )
    benchmark = forms.CharField(
        required=False, max_length=100, help_text="Default: the suites of the file."
    )
    host = forms.CharField(
        required=False, max_length=100, help_text="Default: the machines of the file."
    )
    commit = forms.CharField(
        required=False,
        max_length=100,
        help_text="For results that name none. Default: the newest commit at their date.",
    )
    better = forms.ChoiceField(
        required=False,
        label="Better direction",
        choices=[("", "Unknown"), ("lower", "Lower is better"), ("higher", "Higher is better")],
        help_text="For values whose direction the file does not give.",
    )

    def __init__(self, member: Member, data: Any = None, **options: Any) -> None:
        super().__init__(member, data, **options)
        projects = load_projects(member)
        self.fields["project"].choices = [(each.slug, each.name) for each in projects]  # type: ignore[attr-defined]

    def get_name(self) -> str:
        files = self.cleaned_data["file"]
        return str(files[0].name if len(files) == 1 else f"{len(files)} files.zip")[-100:]

    def write_to(self, target: IO[bytes]) -> None:
        """Write the file; several files as a .zip."""
        write_files(self.cleaned_data["file"], target)

    def build_options(self) -> HistoryOptions:
        return HistoryOptions(**{name: self.cleaned_data[name] for name in OPTIONS})


class StartForm(TeamForm):
    unknown_commits = forms.ChoiceField(
        label="Commits that are not in the repository",
        choices=UnknownCommits.choices,
        initial=UnknownCommits.KEEP,
        widget=forms.RadioSelect,
    )


def write_files(files: Sequence[UploadedFile[Any]], target: IO[bytes]) -> None:
    if len(files) == 1:
        for part in files[0].chunks():
            target.write(part)
        return
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, file in enumerate(files):
            name = PurePath(file.name or "results.json").name
            # Result files of two machines may have the same name, but there is one index.
            place = name if name == "benchmarks.json" else f"{number}/{name}"
            archive.writestr(place, file.read())
