"""Whatever a file holds, it is read, or refused with words; no reader ever breaks."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers.registry import FORMATS
from tests.importers.test_golden import FILES, find_format

WHOLE = {
    path: json.loads(path.read_bytes().removeprefix(b"window.BENCHMARK_DATA = ").rstrip(b";\n"))
    for path in FILES
    if find_format(path) != "csv"
}
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=9)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value inside."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in inside:
        yield (*path, name)
        if isinstance(each, dict | list):
            yield from places(each, (*path, name))


def with_another(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    name, *rest = path
    changed = value.copy()
    changed[name] = with_another(value[name], tuple(rest), other) if rest else other
    return changed


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
@settings(max_examples=60)
@given(data=st.data())
def test_a_mutated_file_raises_only_import_errors(path: Any, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(list(places(WHOLE[path]))))
    changed = with_another(WHOLE[path], place, data.draw(VALUES))
    _read(find_format(path), json.dumps(changed).encode())


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=40)
@given(content=st.binary(max_size=60))
def test_any_bytes_raise_only_import_errors(name: str, content: bytes) -> None:
    _read(name, content)


@settings(max_examples=60)
@given(cells=st.lists(st.text(max_size=8), min_size=3, max_size=3))
def test_any_cells_raise_only_import_errors(cells: list[str]) -> None:
    line = ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)
    content = f"metric,value,measured_at\n{line}\n".encode("utf-8", "surrogatepass")
    _read("csv", content)


def _read(name: str, content: bytes) -> None:
    """Any other exception fails the test."""
    with contextlib.suppress(InvalidRequestError):
        list(FORMATS[name].read(content))
