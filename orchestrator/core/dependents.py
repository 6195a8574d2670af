"""What depends on an object: shown before the object is deleted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DependentCount:
    """How many objects of one kind there are, with the names of some.

    `is_capped`: there are more, which were not counted.
    """

    title: str
    count: int
    names: tuple[str, ...] = ()
    is_capped: bool = False
