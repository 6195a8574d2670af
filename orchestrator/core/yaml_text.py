"""YAML that somebody wrote, as plain values; nothing in it costs more than it says.

An alias stands for all that it names, and one of aliases of aliases doubles with each line: forty
lines would fill any memory. So what a text amounts to is counted before it is made.
"""

import json
from typing import Any

import yaml

#: The largest definitions that are known have some thousands.
MOST_VALUES = 200_000


def yaml_from(source: str) -> Any:
    """What the text says. yaml.YAMLError where it is no YAML, ValueError where it is too much."""
    loader = yaml.SafeLoader(source)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {})
        return _keepable(source, loader.construct_document(node))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    finally:
        loader.dispose()


def _keepable(source: str, value: Any) -> Any:
    """The value itself; only an escape in the source can bring what no database keeps."""
    if "\\" in source:
        check_keepable(value)
    return value


def check_keepable(value: Any) -> None:
    """ValueError where a text in it has a NUL or half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text has half of a character (a lone surrogate)") from error
    if "\\u0000" in text:
        raise ValueError("a text has a NUL")


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """The values below a node, each as often as aliases stand for it."""
    found = known.get(id(node))
    if found == 0:
        raise ValueError("an alias stands inside of what it names")
    if found is None:
        known[id(node)] = 0
        found = 1 + sum(_count(each, known) for each in _inside(node))
        if found > MOST_VALUES:
            raise ValueError(f"its aliases stand for more than {MOST_VALUES:,} values")
        known[id(node)] = found
    return found


def _inside(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []
