"""Find the line of a definition's text for a path into the definition. No Django."""

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode


def find_line(source: str, path: str) -> int | None:
    """Return the line (from 1) of `load.duration_s` or `matrix.size[2]`, or of its nearest parent.

    For a text that is no YAML it is the line where parsing stopped; None if no line is known.
    """
    try:
        root = yaml.compose(source, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        return None if mark is None else mark.line + 1
    except (RecursionError, ValueError):
        return None
    if root is None or not path:
        return None
    return _find_deepest_line(root, path)


def _find_deepest_line(node: Node, path: str) -> int | None:
    """Return the line of the last existing step of `path`; None if even the first is missing."""
    line = None
    while path:
        step = _find_step(node, path)
        if step is None:
            break
        line, node, path = step
    return line


def _find_step(node: Node, path: str) -> tuple[int, Node, str] | None:
    """Return the line, the node and the remaining path after its first step."""
    if isinstance(node, SequenceNode) and path.startswith("["):
        index, _, rest = path[1:].partition("]")
        if index.isdigit() and int(index) < len(node.value):
            item = node.value[int(index)]
            return item.start_mark.line + 1, item, rest.lstrip(".")
    if isinstance(node, MappingNode):
        return _find_key(node, path)
    return None


def _find_key(node: MappingNode, path: str) -> tuple[int, Node, str] | None:
    """Return the longest key that fits: keys may contain dots, such as values of an axis."""
    fitting = [
        (key, value)
        for key, value in node.value
        if isinstance(key, ScalarNode)
        and path.startswith(key.value)
        and path[len(key.value) : len(key.value) + 1] in ("", ".", "[")
    ]
    if not fitting:
        return None
    key, value = max(fitting, key=lambda pair: len(pair[0].value))
    rest = path[len(key.value) :]
    return key.start_mark.line + 1, value, rest.removeprefix(".")
