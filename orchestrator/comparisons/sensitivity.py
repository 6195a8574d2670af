"""Whether the verdicts depend on blocks with a suspect trial: all are judged again without them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from cli.pitwall.units import format_items
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.comparisons.report import Sensitivity
from orchestrator.comparisons.selection import Selection
from orchestrator.stats.multiple_testing import MatrixVerdict

Value = TypeVar("Value")


def list_suspect_cases(selection: Selection) -> list[str]:
    """Return the cases that have a block with a suspect trial: their indices, as text."""
    return [str(index) for index, each in enumerate(selection.exclusions) if each.suspect_blocks]


def leave_out_suspects(selection: Selection) -> Selection:
    """Return the selection without the blocks with a suspect trial.

    The trials of sides that share no block are not identified, so they stay.
    """
    pairs = zip(selection.cases, selection.exclusions, strict=True)
    cases = [_leave_out(case, each.suspect_blocks) for case, each in pairs]
    return replace(selection, cases=cases)


def build_sensitivity(
    selection: Selection, whole: MatrixVerdict, without: MatrixVerdict
) -> Sensitivity:
    return Sensitivity(
        blocks=sum(len(each.suspect_blocks) for each in selection.exclusions),
        before=whole.verdict,
        verdict=without.verdict,
        cases=without.cases,
        counts={str(verdict): number for verdict, number in without.headline.counts.items()},
        changed=sum(without.cases[case] is not verdict for case, verdict in whole.cases.items()),
    )


def describe_sensitivity(sensitivity: Sensitivity) -> str:
    """Return whether the verdict changes without the suspect blocks, in a sentence."""
    if sensitivity.verdict is not sensitivity.before:
        return f"Without them the verdict is {sensitivity.verdict}, not {sensitivity.before}."
    if sensitivity.changed:
        cases = format_items(sensitivity.changed, "case")
        gets = "gets" if sensitivity.changed == 1 else "get"
        return f"Without them the verdict is the same, but {cases} {gets} another one."
    return "Without them the verdict is the same, also of each case."


def _leave_out(case: PairedCase, blocks: Collection[int]) -> PairedCase:
    if not case.paired or not blocks:
        return case
    kept = {
        metric: [at for at, block in enumerate(sides[0]) if block not in blocks]
        for metric, sides in case.value_blocks.items()
    }
    return replace(
        case,
        metrics={
            metric: (_select(values[0], kept[metric]), _select(values[1], kept[metric]))
            for metric, values in case.metrics.items()
        },
        orders={metric: _select(orders, kept[metric]) for metric, orders in case.orders.items()},
        builds={metric: _select(builds, kept[metric]) for metric, builds in case.builds.items()},
        value_blocks={
            metric: (_select(sides[0], kept[metric]), _select(sides[1], kept[metric]))
            for metric, sides in case.value_blocks.items()
        },
        blocks=(case.blocks[0].difference(blocks), case.blocks[1].difference(blocks)),
    )


def _select(values: Sequence[Value], places: Sequence[int]) -> list[Value]:
    return [values[at] for at in places]
