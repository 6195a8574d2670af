"""The notes of a report on what its numbers combine, and what they leave out. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from cli.pitwall.units import format_items
from orchestrator.reports.pivot_model import Observation


def build_report_notes(seen: Sequence[Observation], versions: Sequence[int]) -> tuple[str, ...]:
    """Return the notes. `versions`: the versions of the definition of all trials."""
    measured = [each for each in seen if any(sample.counts for sample in each.samples)]
    return (
        *_build_version_notes(versions),
        *_build_tool_notes(measured),
        *_build_epoch_notes(measured),
        *_build_left_out_notes(measured),
    )


def _build_version_notes(versions: Sequence[int]) -> Iterator[str]:
    if len(versions) > 1:
        words = ", ".join(map(str, versions[:-1]))
        yield (
            f"The cases were measured with versions {words} and {versions[-1]} of the definition: "
            "each cell uses only the newest one."
        )


def _build_tool_notes(measured: Sequence[Observation]) -> Iterator[str]:
    versions: dict[str, set[str]] = defaultdict(set)
    for each in measured:
        name, _, version = each.tool.partition(" ")
        versions[name].add(version)
    for name, several in versions.items():
        if name and len(several) > 1:
            yield (
                f"The cells were measured with {name} {' and '.join(sorted(several))}. Differences "
                "between them include that of the tool."
            )


def _build_epoch_notes(measured: Sequence[Observation]) -> Iterator[str]:
    epochs: dict[str, set[int]] = defaultdict(set)
    for each in measured:
        epochs[each.get_value("host")].add(each.epoch)
    for host, several in sorted(epochs.items()):
        if len(several) > 1:
            yield (
                f"Host {host} changed between the measurements of its cells. Differences between "
                "them include that of the machine."
            )


def _build_left_out_notes(measured: Sequence[Observation]) -> Iterator[str]:
    other_trials = sum(each.other_trials for each in measured)
    if other_trials:
        yield (
            f"{format_items(other_trials, 'trial')} of earlier versions of the definition or of a "
            "tool, of a host before it changed, or from an import next to own trials: left out, "
            "because each number uses only the newest of one kind."
        )
