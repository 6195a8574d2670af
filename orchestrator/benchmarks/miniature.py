"""A small version of a suite, with short loads and few rounds. No Django.

`miniature.yaml` of a suite has `changes`, which are merged into the definition, and `cases`, an
expression that selects some of its cases. It shows that a suite works on a machine; its results are
not those of the full suite.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from orchestrator.benchmarks.sized_suites import SizeFile, merge_into_definition


class _Miniature(SizeFile):
    cases: Annotated[str, Field(max_length=2000)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miniature:
    """`source`: the definition as YAML; `cases`: an expression that selects the measured cases."""

    source: str
    cases: str


def build_miniature(source: str, changes: str) -> Miniature:
    """Apply `changes` (the text of a `miniature.yaml`) to the definition `source`.

    Raise InvalidRequestError if one of them cannot be read; `parse` validates the result.
    """
    wanted, text = merge_into_definition(source, changes, _Miniature)
    return Miniature(source=f"# In miniature: short loads, few rounds.\n{text}", cases=wanted.cases)
