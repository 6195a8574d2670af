"""The order of test files in a parallel run."""

from collections.abc import Sequence
from pathlib import Path

import pytest

#: Tests with these markers start Celery workers and load, and mostly wait for them.
WAITING = frozenset({"engine", "chaos"})
#: They are in this first part of the order, so that none of them ends the run alone. The rest takes
#: a fifth of the time.
FIRST_PART = 0.6


def spread_waiting(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The same tests, file by file. Files with waiting tests are at equal distances."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [each for each in files.values() if _waits(each)]
    others = [each for each in files.values() if not _waits(each)]
    placed = [(index * FIRST_PART / len(waiting), each) for index, each in enumerate(waiting)] + [
        (index / len(others), each) for index, each in enumerate(others)
    ]
    placed.sort(key=lambda entry: entry[0])
    return [item for _, tests in placed for item in tests]


def _waits(tests: Sequence[pytest.Item]) -> bool:
    return any(mark.name in WAITING for test in tests for mark in test.iter_markers())
