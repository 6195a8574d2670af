"""The form that imports a file of published results."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from cli.pitwall.units import format_bytes
from orchestrator.importers.registry import FORMATS
from orchestrator.reports.reference_import import NewImport
from orchestrator.web.forms import TeamForm

#: The request waits for its import, so larger files need the command line.
MAX_UPLOAD_BYTES = 32 * 1024**2


class NumbersField(forms.CharField):
    """Numbers separated by commas, as a frozen set."""

    def clean(self, value: Any) -> frozenset[float]:
        text = super().clean(value)
        try:
            return frozenset(float(word) for word in text.split(",") if word.strip())
        except ValueError as error:
            raise ValidationError(
                f"expected numbers separated by commas, such as -1, 0; got {text}."
            ) from error


class ReferenceForm(TeamForm):
    """The other fields fill in what the file does not contain."""

    renamed = {"environment": "profile"}

    file = forms.FileField(
        help_text=f"At most {MAX_UPLOAD_BYTES // 1024**2} MiB. Import larger files with "
        "manage.py import_results."
    )
    format = forms.ChoiceField(choices=[(each.name, each.title) for each in FORMATS.values()])
    source = forms.CharField(
        required=False,
        max_length=100,
        help_text="The name in Pitwall. Default: the file name. An existing source is updated.",
    )
    origin = forms.CharField(
        required=False,
        max_length=2000,
        help_text="Where it was published: an address or a description.",
    )
    suite = forms.CharField(
        required=False, max_length=100, help_text="The benchmark of the results."
    )
    profile = forms.CharField(
        required=False,
        max_length=100,
        label="Machine",
        help_text="The name of a hardware profile, or any other text.",
    )
    commit = forms.CharField(required=False, max_length=100, label="Commit or version")
    measured_at = forms.DateTimeField(
        required=False, label="Measured at (UTC)", help_text="Such as 2026-01-31 12:00."
    )
    unknown = NumbersField(
        required=False,
        max_length=200,
        label="Numbers that mean unknown",
        help_text="Such as -1; separated by commas.",
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_UPLOAD_BYTES:
            raise ValidationError(
                f"{file.name} has {format_bytes(file.size)}; a page takes at most "
                f"{format_bytes(MAX_UPLOAD_BYTES)}. Use manage.py import_results for it."
            )
        return file

    def new_import(self) -> NewImport:
        data = self.cleaned_data
        return NewImport(
            name=data["source"] or data["file"].name,
            format=data["format"],
            content=data["file"].read(),
            origin=data["origin"],
            suite=data["suite"],
            environment=data["profile"],
            commit=data["commit"],
            measured_at=data["measured_at"],
            unknown=data["unknown"],
        )
