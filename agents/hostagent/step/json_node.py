"""JSON values with their path in the document, for error messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional, TypeVar

from ..errors import BadPlan

T = TypeVar("T")


class Node:
    """A value of the plan with its path. Its methods raise BadPlan for another type."""

    def __init__(self, value: Any, path: str) -> None:
        self._value = value
        self.path = path

    def __getitem__(self, key: str) -> Node:
        if not isinstance(self._value, dict) or key not in self._value:
            raise BadPlan(f"{self.path}.{key} is missing from the plan")
        return Node(self._value[key], f"{self.path}.{key}")

    def wrong(self, expected: str) -> BadPlan:
        return BadPlan(f"{self.path}: expected {expected}, found {self._value!r}")

    def has(self, key: str) -> bool:
        return isinstance(self._value, dict) and key in self._value

    def items(self) -> tuple[Node, ...]:
        values = self._typed(list, "a list")
        return tuple(Node(value, f"{self.path}[{at}]") for at, value in enumerate(values))

    def fields(self) -> dict[str, Node]:
        return {key: self[key] for key in self._typed(dict, "an object")}

    def text(self) -> str:
        value: str = self._typed(str, "a string")
        return value

    def number(self) -> float:
        try:
            return float(self._typed((int, float), "a number"))
        except OverflowError as error:
            raise self.wrong("a finite number") from error

    def whole(self) -> int:
        value: int = self._typed(int, "a whole number")
        return value

    def truth(self) -> bool:
        if not isinstance(self._value, bool):
            raise self.wrong("true or false")
        return self._value

    def texts(self) -> tuple[str, ...]:
        return tuple(item.text() for item in self.items())

    def mapping(self) -> dict[str, str]:
        return {key: value.text() for key, value in self.fields().items()}

    def wholes(self) -> tuple[int, ...]:
        return tuple(item.whole() for item in self.items())

    def optional(self, read: Callable[[Node], T]) -> Optional[T]:
        """Return the result of `read`, or None if the value is null."""
        return None if self._value is None else read(self)

    def _typed(self, kind: Any, name: str) -> Any:
        if not isinstance(self._value, kind) or isinstance(self._value, bool):
            raise self.wrong(name)
        return self._value
