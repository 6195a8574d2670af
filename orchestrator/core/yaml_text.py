"""Parse untrusted YAML into plain values of limited size.

Nested aliases double the size with each line: forty lines could fill any memory. Therefore the size
is computed before the values are created.
"""

from typing import Any

import yaml

from cli.pitwall.units import format_count
from orchestrator.core.storable_text import check_storable

#: The largest known definitions have some thousands.
MOST_VALUES = 200_000


def parse_yaml(source: str) -> Any:
    """Return the value of the text.

    Raise yaml.YAMLError if it is no YAML, ValueError if it is too large.
    """
    loader = yaml.SafeLoader(source)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {})
        value = loader.construct_document(node)
        if "\\" in source:  # Only an escape can create text that is not storable.
            check_storable(value)
        return value
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    finally:
        loader.dispose()


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values below a node, with each alias expanded.

    Raise yaml.MarkedYAMLError if a mapping has a key twice.
    """
    count = known.get(id(node))
    if count == 0:
        raise ValueError("an alias refers to a value that contains it")
    if count is None:
        known[id(node)] = 0
        _check_keys(node)
        count = 1 + sum(_count(each, known) for each in _list_children(node))
        if count > MOST_VALUES:
            raise ValueError(f"its aliases stand for more than {format_count(MOST_VALUES)} values")
        known[id(node)] = count
    return count


def _check_keys(node: yaml.Node) -> None:
    """PyYAML would use the last value of a repeated key, and drop the others silently."""
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        name = (key.tag, key.value)
        if name in lines:
            raise yaml.MarkedYAMLError(
                problem=f"the key {key.value[:80]} is given twice; first in line {lines[name]}",
                problem_mark=key.start_mark,
            )
        lines[name] = key.start_mark.line + 1


def _list_children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []
