"""Other repositories of a definition, whose files are next to the measured commit. No Django."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import Field, field_validator

from orchestrator.benchmarks.fields import Scalar, Strict, format_axis_value
from orchestrator.benchmarks.placeholders import find_placeholders

MAX_REPOSITORIES = 5


class OtherRepository(Strict):
    """A commit of another project of the team: `ref` is a tag, a branch or a hash.

    `ref` may be an axis of the matrix, such as `{framework}`.
    """

    project: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]
    ref: Annotated[str, Field(min_length=1, max_length=200)]

    @field_validator("ref")
    @classmethod
    def _is_name_or_axis(cls, ref: str) -> str:
        is_axis = find_placeholders(ref) and ref == f"{{{min(find_placeholders(ref))}}}"
        if not is_axis and ("{" in ref or ref.startswith("-") or ":" in ref or " " in ref):
            raise ValueError(
                f"expected a tag, a branch, a hash or an axis such as '{{framework}}', got {ref!r}"
            )
        return ref


class NamedRef(NamedTuple):
    """A repository of a definition, its project, and the name of a commit in it."""

    name: str
    project: str
    ref: str


def list_refs(
    repositories: Mapping[str, OtherRepository], parameters: Mapping[str, Scalar]
) -> list[NamedRef]:
    """Return the refs of all repositories for one case."""
    return [
        NamedRef(name, each.project, _fill(each.ref, parameters))
        for name, each in repositories.items()
    ]


def _fill(ref: str, parameters: Mapping[str, Scalar]) -> str:
    axes = find_placeholders(ref)
    return format_axis_value(parameters[min(axes)]) if axes else ref
