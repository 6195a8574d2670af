"""A small version of a suite, with short loads and few rounds. No Django.

`miniature.yaml` of a suite has `changes`, which are merged into the definition, and `cases`, an
expression that selects some of its cases. It shows that a suite works on a machine; its results are
not those of the full suite.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError

from orchestrator.benchmarks.faults import describe_yaml_error, find_first_fault
from orchestrator.benchmarks.fields import Strict, refuse
from orchestrator.benchmarks.options import merge_changes
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.yaml_text import parse_yaml


class _Miniature(Strict):
    changes: dict[str, Any]
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
    try:
        whole, data = parse_yaml(source), parse_yaml(changes)
        wanted = _Miniature.model_validate(data)
    except yaml.YAMLError as error:
        raise InvalidRequestError(f"not valid YAML: {describe_yaml_error(error)}") from error
    except ValueError as error:
        if not isinstance(error, ValidationError):
            raise InvalidRequestError(f"not a usable YAML document: {error}") from error
        path, problem = find_first_fault(error, data, _Miniature)
        raise refuse(path or "miniature", problem) from error
    small = merge_changes(whole, wanted.changes)
    text = yaml.safe_dump(small, sort_keys=False, allow_unicode=True, width=100)
    return Miniature(source=f"# In miniature: short loads, few rounds.\n{text}", cases=wanted.cases)
