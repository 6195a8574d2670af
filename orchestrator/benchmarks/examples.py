"""The examples: definitions for typical repositories, the files of docs/examples.

They are part of the documentation, and the form of a new benchmark offers them.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings

from orchestrator.benchmarks.spec import parse
from orchestrator.core.errors import NotFoundError

FOLDER = Path(settings.BASE_DIR) / "docs" / "examples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """`slug` is the name of its file; `source` begins with a comment about what to change."""

    slug: str
    title: str
    source: str


@cache
def load_examples() -> tuple[Example, ...]:
    """Return all examples, ordered by title."""
    examples = [_read(path) for path in FOLDER.glob("*.yaml")]
    return tuple(sorted(examples, key=lambda example: example.title.lower()))


def load_example(slug: str) -> Example:
    """Return an example; raise NotFoundError if there is none of that name."""
    example = next((each for each in load_examples() if each.slug == slug), None)
    if example is None:
        raise NotFoundError(f"there is no example {slug}; the form lists all examples")
    return example


def _read(path: Path) -> Example:
    source = path.read_text()
    return Example(slug=path.stem, title=parse(source).title, source=source)
