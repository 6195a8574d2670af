"""`data.js` of github-action-benchmark, and the JSON in it."""

import re
from collections.abc import Iterator
from typing import Any

from orchestrator.importers.document import Node, parse_document
from orchestrator.importers.rows import Better, Figure, Row, build_row
from orchestrator.importers.units import classify_unit

_PREFIX = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:window\.)?BENCHMARK_DATA\s*=\s*")
_SPREAD = re.compile(r"\A(?:±|\+/-)?\s*([0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(%?)\Z")
#: Tools whose direction does not follow from the unit; higher is better for a rate.
_HIGHER = frozenset({"customBiggerIsBetter", "benchmarkjs", "pytest"})
_LOWER = frozenset({"customSmallerIsBetter", "googlecpp", "catch2", "benchmarkdotnet", "julia"})


def read(content: bytes) -> Iterator[Row]:
    """Yield each bench of each entry, and its range as a row of the statistic `range`.

    The suite is the entry's name, the time that of the run and the commit its full id.
    """
    whole = parse_document(strip_script(content))
    for suite, entries in whole["entries"].fields():
        for entry in entries.items():
            fields = {
                "suite": suite,
                "measured_at": entry["date"].from_ms(),
                **_read_commit(entry["commit"]),
            }
            tool = entry.get("tool")
            for bench in entry["benches"].items():
                yield from _iterate_rows(bench, "" if tool is None else tool.text(), fields)


def strip_script(content: bytes) -> bytes:
    """Return the JSON of a `data.js`; other content stays as it is."""
    match = _PREFIX.match(content)
    return content if match is None else content[match.end() :].rstrip().removesuffix(b";")


def _read_commit(commit: Node) -> dict[str, Any]:
    fields: dict[str, Any] = {"commit": commit["id"].text()}
    message, author = commit.get("message"), commit.get("author")
    if message is not None:
        fields["subject"] = message.text().partition("\n")[0]
    name = author and author.get("name")
    if name is not None:
        fields["author"] = name.text()
    moment = commit.get("timestamp")
    if moment is not None:
        fields["committed_at"] = moment.instant()
    return fields


def _iterate_rows(bench: Node, tool: str, fields: dict[str, Any]) -> Iterator[Row]:
    node = bench.get("unit")
    unit = "" if node is None else node.text()
    kind = classify_unit(unit)
    more = {
        **fields,
        "parameters": {"benchmark": bench["name"].text()},
        "better": _derive_better(tool, kind),
    }
    yield build_row(
        kind, Node(bench.value.get("value"), f"{bench.path}.value").figure(), unit, **more
    )
    spread = bench.get("range")
    if spread is not None:
        figure, is_share = _parse_spread(spread)
        yield build_row(kind, figure, "%" if is_share else unit, **more, statistic="range")


def _derive_better(tool: str, kind: str) -> Better:
    if tool in _HIGHER or kind == "rate":
        return "higher"
    return "lower" if tool in _LOWER or kind == "time" else ""


def _parse_spread(spread: Node) -> tuple[Figure, bool]:
    """Return `± 41739` or `3.5%` as a value; other text is stored without a value."""
    match = _SPREAD.match(spread.text().strip())
    if match is None:
        return (None, spread.text()), False
    return Node(match[1].replace(",", ""), spread.path).figure(), bool(match[2])
