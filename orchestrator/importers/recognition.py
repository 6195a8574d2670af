"""Recognise the format of a file of results by its content."""

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers.bencher import is_perf
from orchestrator.importers.document import FileFaultError, parse_document
from orchestrator.importers.github_action import strip_script
from orchestrator.importers.registry import HISTORY_FORMATS

Check = Callable[[Any], bool]


def recognise_format(files: Mapping[str, bytes]) -> str:
    """Return the name of the format of these files, which all have the same one.

    Raise InvalidRequestError, with the known formats, if there is none.
    """
    if len(files) > 1:
        return "asv"
    [(name, content)] = files.items()
    if name.endswith(".csv"):
        return "csv"
    try:
        whole = parse_document(strip_script(content)).value
    except FileFaultError as error:
        if _has_csv_heading(content):
            return "csv"
        raise InvalidRequestError(f"{name}: {error}", field="file") from error
    for each, fits in _CHECKS.items():
        if fits(whole):
            return each
    raise InvalidRequestError(
        f"the format of {name} is unknown; name it if it is one of {', '.join(HISTORY_FORMATS)}",
        field="format",
    )


def _has_csv_heading(content: bytes) -> bool:
    heading = content.partition(b"\n")[0].removeprefix(b"\xef\xbb\xbf").strip().split(b",")
    return {b"metric", b"value"} <= {cell.strip() for cell in heading}


def _has(value: Any, *names: str) -> bool:
    return isinstance(value, dict) and all(name in value for name in names)


def _get_first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _is_conbench(value: Any) -> bool:
    data = value.get("data") if isinstance(value, dict) else None
    return _has(_get_first(data if isinstance(data, list) else value), "tags", "timestamp")


def _is_bencher(value: Any) -> bool:
    """Return whether it is `bencher perf`, or the Metric Format: benchmark → measure → value."""
    if is_perf(value):
        return _has(value, "project") or _has(_get_first(value["results"]), "testbed")
    measures = next(iter(value.values()), None) if isinstance(value, dict) else None
    return isinstance(measures, dict) and _has(next(iter(measures.values()), None), "value")


_CHECKS: Mapping[str, Check] = {
    "github-action-benchmark": lambda value: _has(value, "entries"),
    "the-benchmarker": lambda value: _has(value, "frameworks", "metrics"),
    "asv": lambda value: _has(value, "commit_hash", "result_columns"),
    "json": lambda value: _has(value, "version", "results"),
    "codespeed": lambda value: _has(_get_first(value), "commitid"),
    "conbench": _is_conbench,
    "bencher": _is_bencher,
}
