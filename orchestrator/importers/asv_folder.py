"""The results folder of asv: its result files, and the names that `benchmarks.json` gives them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from orchestrator.importers import asv
from orchestrator.importers.document import FileFaultError, Node, parse_document
from orchestrator.importers.rows import Row, Scalar

INDEX = "benchmarks.json"
#: Files of the folder that hold no results.
_OTHERS = frozenset({INDEX, "machine.json"})
_PARAMETER = re.compile(r"param(\d+)")


def read_folder(files: Mapping[str, bytes]) -> Iterator[Row]:
    """Yield the rows of all result files, with the parameters and units of the index."""
    index: dict[str, Any] = {}
    for name, content in files.items():
        if PurePosixPath(name).name == INDEX:
            index = dict(parse_document(content).fields())
    for name, content in sorted(files.items()):
        if PurePosixPath(name).name in _OTHERS:
            continue
        try:
            for row in asv.read(content):
                yield _name_parameters(row, index.get(str(row.parameters["benchmark"])))
        except FileFaultError as error:
            raise FileFaultError(name, str(error)) from error


def _name_parameters(row: Row, entry: Node | None) -> Row:
    if entry is None or not isinstance(entry.value, dict):
        return row
    names = entry.get("param_names")
    known = [] if names is None else [each.text() for each in names.items()]
    parameters: dict[str, Scalar] = {
        _get_name(axis, known): value for axis, value in row.parameters.items()
    }
    unit = entry.get("unit")
    if unit is not None and row.metric == "value" and not row.unit:
        return replace(row, parameters=parameters, unit=unit.text())
    return replace(row, parameters=parameters)


def _get_name(axis: str, names: list[str]) -> str:
    match = _PARAMETER.fullmatch(axis)
    place = int(match[1]) - 1 if match else len(names)
    return names[place] if place < len(names) and names[place] not in ("benchmark", "env") else axis
