"""The catalogue: the suites that come with Pitwall, below agents/suites."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from orchestrator.benchmarks.review import Fault, Review, review
from orchestrator.core.errors import NotFoundError

FILE = "benchmark.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite of the catalogue; `outcome` is a Fault if its definition is not valid.

    `miniature` and `reports` are the texts of its `miniature.yaml` and `report.yaml`, or empty.
    """

    slug: str
    source: str
    readme: str
    miniature: str
    reports: str
    outcome: Review | Fault

    @property
    def title(self) -> str:
        return self.outcome.spec.title if isinstance(self.outcome, Review) else self.slug

    @property
    def review(self) -> Review | None:
        return self.outcome if isinstance(self.outcome, Review) else None


def list_slugs() -> list[str]:
    """Return the slugs of all suites, in order: the names of their folders."""
    return sorted(path.parent.name for path in _get_folder().glob(f"*/{FILE}"))


def load_suites() -> list[Suite]:
    """Return all suites, ordered by title."""
    suites = [_read_suite(_get_folder() / slug / FILE) for slug in list_slugs()]
    return sorted(suites, key=lambda suite: suite.title.lower())


def load_suite(slug: str) -> Suite:
    return _read_suite(get_suite_folder(slug) / FILE)


def get_suite_folder(slug: str) -> Path:
    """Return the folder with the files of a suite. Raise NotFoundError if there is none."""
    if slug not in list_slugs():
        raise NotFoundError(f"the catalogue has no suite {slug}")
    return _get_folder() / slug


def _get_folder() -> Path:
    return Path(settings.BASE_DIR) / "agents" / "suites"


def _read_suite(path: Path) -> Suite:
    facts = path.stat()
    return _read(path, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=64)
def _read(path: Path, _changed: int, _size: int) -> Suite:
    """Read a suite; cached by change time and size, because a large matrix takes long to review."""
    source = path.read_text()
    return Suite(
        slug=path.parent.name,
        source=source,
        readme=_read_text(path.with_name("README.md")),
        miniature=_read_text(path.with_name("miniature.yaml")),
        reports=_read_text(path.with_name("report.yaml")),
        outcome=review(source),
    )


def _read_text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
