"""Base class of forms: they check the syntax of the input, and the services check its meaning."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import load_defined_benchmarks
from orchestrator.core.errors import ConflictError, HostError, InvalidRequestError

#: Errors that a form shows at its fields; all others become an error page.
FORM_ERRORS = (InvalidRequestError, ConflictError, HostError)
T = TypeVar("T")


class TeamForm(forms.Form):
    """A form whose choices are those of the member's team."""

    #: Service field → form field, where the names differ.
    renamed: dict[str, str] = {}

    def __init__(self, member: Member, data: Any = None, **options: Any) -> None:
        self.member = member
        super().__init__(data, label_suffix="", **options)

    @property
    def status(self) -> int:
        """The HTTP status of a page with this form."""
        return 422 if self.is_bound and self.errors else 200

    def show_error(self, error: Exception, default: str | None = None) -> None:
        """Show a service's error at the field that it names, otherwise at `default`."""
        named = getattr(error, "field", None) or ""
        field = self.renamed.get(named, named)
        place = field if field in self.fields else default
        # At its own field, a message need not name it.
        message = str(error).removeprefix(f"{place}: ")
        self.add_error(place or NON_FIELD_ERRORS, message)

    def create(self, make: Callable[[], T], default: str | None = None) -> T | None:
        """Return what the service `make` returns, which is not None.

        None if the form is not valid, or the service has an error. The form shows them; those of
        the service without a field at `default`.
        """
        if not self.is_valid():
            return None
        try:
            return make()
        except FORM_ERRORS as error:
            self.show_error(error, default)
            return None

    def submit(self, save: Callable[[], object], default: str | None = None) -> bool:
        """Call the service `save` as `create` does; False if it or the form has errors."""

        def call() -> bool:
            save()
            return True

        return bool(self.create(call, default))

    def _field(self, name: str) -> Any:
        return self.fields[name]


class ShortNameField(forms.CharField):
    """A short name that the service checks: here, so that a form shows all its faults at once."""

    def __init__(self, *, check: Callable[[str], None], **options: Any) -> None:
        self._check = check
        super().__init__(**options)

    def validate(self, value: str) -> None:
        super().validate(value)
        if not value:
            return
        try:
            self._check(value)
        except InvalidRequestError as error:
            raise forms.ValidationError(str(error)) from error


class BenchmarkChoiceForm(TeamForm):
    """A form that names one of the benchmarks that Pitwall can measure."""

    benchmark = forms.ChoiceField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._field("benchmark").choices = load_benchmark_choices(self.member)

    def split_benchmark(self) -> tuple[str, str]:
        """Return the slugs of the project and of the benchmark that a valid form names."""
        project, _, benchmark = self.cleaned_data["benchmark"].rpartition("/")
        return project, benchmark


def load_benchmark_choices(member: Member) -> list[tuple[str, str]]:
    """Return the benchmarks that Pitwall can measure."""
    return build_choices(load_defined_benchmarks(member))


def build_choices(benchmarks: Iterable[Benchmark]) -> list[tuple[str, str]]:
    return [(build_benchmark_key(each), _label(each)) for each in benchmarks]


def build_benchmark_key(benchmark: Benchmark) -> str:
    """Return `project/slug`, the name of a benchmark in forms and addresses."""
    return f"{benchmark.project.slug}/{benchmark.slug}"


def _label(benchmark: Benchmark) -> str:
    return f"{benchmark.title} ({build_benchmark_key(benchmark)})"
