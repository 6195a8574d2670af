"""Find out whether two commits gave the same build: then a comparison shows only noise."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.runs.models import Build, Run

_NOISE = "differences between the commits are noise of the measurement"


class IdentifiedBuild(NamedTuple):
    """A build of a commit by a recipe on a host, and its digests; empty if unknown."""

    commit: int
    recipe: tuple[str, str]
    digest: str
    source_digest: str


def load_builds(
    benchmark: Benchmark, baseline: Commit, contender: Commit, run: Run | None
) -> list[IdentifiedBuild]:
    """Return the different builds of both commits for a benchmark, or for one run."""
    builds = Build.objects.filter(
        job__run__definition__benchmark=benchmark, commit__in=[baseline, contender]
    )
    if run is not None:
        builds = builds.filter(job__run=run)
    rows = builds.order_by().values_list(
        "commit_id", "host_id", "recipe", "digest", "source_digest"
    )
    return [
        IdentifiedBuild(commit, (str(host), recipe), digest, source_digest)
        for commit, host, recipe, digest, source_digest in rows.distinct()
    ]


def build_same_build_notes(
    builds: Iterable[IdentifiedBuild], baseline: int, contender: int
) -> Iterator[str]:
    """Yield a note if recipes gave the same build for both commits, or had the same source."""
    if baseline == contender:
        return
    found: dict[tuple[str, str], dict[int, list[IdentifiedBuild]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for build in builds:
        if build.digest and build.source_digest:
            found[build.recipe][build.commit].append(build)
    pairs = [
        (sides[baseline], sides[contender])
        for sides in found.values()
        if baseline in sides and contender in sides
    ]
    same = sum(_have_one({build.digest for side in pair for build in side}) for pair in pairs)
    source = sum(
        _have_one({build.source_digest for side in pair for build in side}) for pair in pairs
    )
    if pairs and same == len(pairs):
        yield f"Both commits gave the same build, byte for byte: {_NOISE}."
    elif same:
        yield (
            f"{same} of {len(pairs)} builds are the same for both commits, byte for byte: in their "
            f"cases, {_NOISE}."
        )
    elif pairs and source == len(pairs):
        yield (
            "Both commits have the same source, steps and install: unless the build steps read "
            f"something else, {_NOISE}."
        )


def _have_one(values: set[str]) -> bool:
    return len(values) == 1
