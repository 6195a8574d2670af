"""Parse untrusted YAML into plain values of limited size.

Nested aliases double the size with each line: forty lines could fill any memory. Therefore the size
is computed before the values are created.
"""

import json
from typing import Any

import yaml

from cli.pitwall.units import format_count

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
        return _check_storable(source, loader.construct_document(node))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    finally:
        loader.dispose()


def _check_storable(source: str, value: Any) -> Any:
    """Check the value only if the source has an escape: other text is always storable."""
    if "\\" in source:
        check_keepable(value)
    return value


def check_keepable(value: Any) -> None:
    """Raise ValueError if a text in it contains a NUL or half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text has half of a character (a lone surrogate)") from error
    if "\\u0000" in text:
        raise ValueError("a text has a NUL")


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values below a node, with each alias expanded."""
    count = known.get(id(node))
    if count == 0:
        raise ValueError("an alias refers to a value that contains it")
    if count is None:
        known[id(node)] = 0
        count = 1 + sum(_count(each, known) for each in _list_children(node))
        if count > MOST_VALUES:
            raise ValueError(f"its aliases stand for more than {format_count(MOST_VALUES)} values")
        known[id(node)] = count
    return count


def _list_children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []
