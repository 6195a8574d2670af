"""What a comparison says about the difference between builds, in words."""

from collections.abc import Iterator, Sequence

from cli.pitwall.units import format_items, format_percent
from orchestrator.comparisons.report import CaseComparison
from orchestrator.stats.build_variance import ENOUGH_BUILDS

ONE_BUILD_NOTE = (
    "Only one build of a commit was measured: a difference between builds is not separated from a "
    f"change of the code. A run with {ENOUGH_BUILDS} builds of each commit separates them."
)


def build_build_notes(cases: Sequence[CaseComparison], *, has_steps: bool) -> Iterator[str]:
    """Yield a note on the builds of the primary metrics. `has_steps`: commits are built."""
    known = [
        metric.result
        for case in cases
        for metric in case.metrics
        if has_steps and metric.primary and case.paired and all(metric.result.builds)
    ]
    single = [each for each in known if each.has_one_build]
    noises = [each.build_noise for each in single if each.build_noise is not None]
    if noises:
        yield (
            f"{ONE_BUILD_NOTE} Intervals contain the noise between builds that the calibration of "
            f"the host measured, up to {format_percent(max(noises))}."
        )
    elif single:
        yield ONE_BUILD_NOTE
    elif known:
        least = min(min(each.builds) for each in known)
        yield (
            f"{format_items(least, 'build')} of each commit were measured: intervals contain the "
            "difference between builds."
        )
