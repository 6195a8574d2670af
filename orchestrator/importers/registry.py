"""The formats that can be imported."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers import (
    asv,
    bencher,
    codespeed,
    conbench,
    github_action,
    hyperfine,
    k6,
    own_form,
    pytest_benchmark,
    techempower,
    the_benchmarker,
)
from orchestrator.importers.rows import Row

Read = Callable[[bytes], Iterator[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """`read` raises FileFaultError with the location if a file is not of this format.

    `history`: its results have commits or dates, so they can be imported as a history. `versions`:
    its commits are versions of other software than the measured project.
    """

    name: str
    title: str
    read: Read
    history: bool = False
    versions: bool = False


_ALL = (
    Format(name="csv", title="Pitwall's CSV", read=own_form.read_csv, history=True),
    Format(name="json", title="Pitwall's JSON", read=own_form.read_json, history=True),
    Format(name="asv", title="asv, result files", read=asv.read, history=True),
    Format(
        name="bencher",
        title="Bencher: output of bencher perf, or Metric Format",
        read=bencher.read,
        history=True,
    ),
    Format(name="codespeed", title="Codespeed, results to add", read=codespeed.read, history=True),
    Format(name="conbench", title="Conbench, benchmark results", read=conbench.read, history=True),
    Format(
        name="github-action-benchmark",
        title="github-action-benchmark, data.js",
        read=github_action.read,
        history=True,
    ),
    Format(name="hyperfine", title="hyperfine --export-json", read=hyperfine.read),
    Format(name="k6", title="k6, a summary", read=k6.read),
    Format(name="pytest-benchmark", title="pytest-benchmark, JSON", read=pytest_benchmark.read),
    Format(name="techempower", title="TechEmpower, results.json", read=techempower.read),
    Format(
        name="the-benchmarker",
        title="the-benchmarker, data.json",
        read=the_benchmarker.read,
        history=True,
        versions=True,
    ),
)

FORMATS: Mapping[str, Format] = MappingProxyType({each.name: each for each in _ALL})
HISTORY_FORMATS: Mapping[str, Format] = MappingProxyType(
    {each.name: each for each in _ALL if each.history}
)


def format_named(name: str) -> Format:
    """Return the format. For another name raise InvalidRequestError with the known names."""
    if name not in FORMATS:
        raise InvalidRequestError(
            f"expected one of the formats {', '.join(FORMATS)}, got {name!r}", field="format"
        )
    return FORMATS[name]
