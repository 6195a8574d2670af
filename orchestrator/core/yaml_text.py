"""YAML that somebody wrote, as plain values; nothing in it costs more than it says.

An alias stands for all that it names, and one of aliases of aliases doubles with each line: forty
lines would fill any memory. So what a text amounts to is counted before it is made.
"""

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
        return loader.construct_document(node)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    finally:
        loader.dispose()


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
