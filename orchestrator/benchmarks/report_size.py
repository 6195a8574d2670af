"""The size of a suite's measurement for its report: short enough for hours, with intervals.

`report-size.yaml` of a suite has `changes`, which are merged into the definition, and `parts`: each
is one run of some cases. All parts are repeated `repeats` times, because the interval of a number
needs several runs. No Django.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from orchestrator.benchmarks.fields import Strict
from orchestrator.benchmarks.sized_suites import SizeFile, merge_into_definition

#: Fewer runs have no interval, and a narrow one needs more.
FEWEST_REPEATS = 5


class Part(Strict):
    """One run: the cases that an expression selects (empty: all), at the newest `commits`."""

    cases: Annotated[str, Field(max_length=2000)] = ""
    commits: Annotated[int, Field(ge=1, le=10)] = 1


class _ReportSize(SizeFile):
    repeats: Annotated[int, Field(ge=FEWEST_REPEATS, le=50)]
    parts: Annotated[list[Part], Field(min_length=1, max_length=20)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSize:
    """`source`: the definition as YAML; `parts`: the runs of one repetition."""

    source: str
    repeats: int
    parts: tuple[Part, ...]


def build_report_size(source: str, changes: str) -> ReportSize:
    """Apply `changes` (the text of a `report-size.yaml`) to the definition `source`.

    Raise InvalidRequestError if one of them cannot be read; `parse` validates the result.
    """
    wanted, text = merge_into_definition(source, changes, _ReportSize)
    return ReportSize(
        source=f"# In the size of the report: shorter loads, several runs.\n{text}",
        repeats=wanted.repeats,
        parts=tuple(wanted.parts),
    )
