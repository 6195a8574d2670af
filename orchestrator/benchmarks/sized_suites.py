"""Definitions of suites in another size: changes in a file are merged into them. No Django."""

from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from orchestrator.benchmarks.faults import describe_yaml_error, find_first_fault
from orchestrator.benchmarks.fields import Strict, refuse
from orchestrator.benchmarks.options import merge_changes
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.yaml_text import parse_yaml


class SizeFile(Strict):
    """The common part of the files of sizes: `changes` of the definition."""

    changes: dict[str, Any]


Size = TypeVar("Size", bound=SizeFile)


def merge_into_definition(source: str, text: str, model: type[Size]) -> tuple[Size, str]:
    """Return the file of a size with the content `text`, and the changed definition as YAML.

    Raise InvalidRequestError if one of the texts cannot be read.
    """
    try:
        whole, data = parse_yaml(source), parse_yaml(text)
        wanted = model.model_validate(data)
    except yaml.YAMLError as error:
        raise InvalidRequestError(f"not valid YAML: {describe_yaml_error(error)}") from error
    except ValueError as error:
        if not isinstance(error, ValidationError):
            raise InvalidRequestError(f"not a usable YAML document: {error}") from error
        path, problem = find_first_fault(error, data, model)
        raise refuse(path or "changes", problem) from error
    sized = merge_changes(whole, wanted.changes)
    return wanted, yaml.safe_dump(sized, sort_keys=False, allow_unicode=True, width=100)
