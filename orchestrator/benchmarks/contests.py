"""The contest axis of a definition: its values are measured in common blocks. No Django.

The cases of a contest differ only in the value of this axis. A block of them is one round of one
job, so their values are compared in pairs, like those of two commits.
"""

from collections.abc import Mapping

from orchestrator.benchmarks.fields import Scalar, format_axis_value

#: The values of a case on all axes but the contest axis, as text.
ContestKey = tuple[tuple[str, str], ...]


def get_contest_key(axis: str, parameters: Mapping[str, Scalar]) -> ContestKey:
    """Return what identifies the contest of a case: its values on the other axes."""
    others = ((name, value) for name, value in parameters.items() if name != axis)
    return tuple(sorted((name, format_axis_value(value)) for name, value in others))
