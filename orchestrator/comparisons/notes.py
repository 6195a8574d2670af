"""What a comparison says in sentences: its headline, and what to know before believing it."""

from collections.abc import Iterator, Sequence

from django.db.models import F

from orchestrator.comparisons.cells import Cells
from orchestrator.comparisons.compared import CaseComparison
from orchestrator.comparisons.exclusions import RunOfBoth
from orchestrator.comparisons.sides import Side
from orchestrator.core.units import format_change
from orchestrator.loadtools.metrics import metric_for
from orchestrator.runs.models import HostRole, Placement
from orchestrator.stats.comparison import Verdict
from orchestrator.stats.matrix import Headline
from orchestrator.stats.unpaired import UNPAIRED

#: A comparison of which more than this share of the blocks is void is not to be believed.
MAX_EXCLUDED_SHARE = 0.3

_SENTENCES = {
    Verdict.REGRESSED: "{contender} is a regression: {change}.",
    Verdict.IMPROVED: "{contender} is an improvement: {change}.",
    Verdict.TRIVIAL: "{contender} changed something, but less than matters: {change}.",
    Verdict.EQUIVALENT: "{contender} performs the same: any change is proven to be within the "
    "margin.",
    Verdict.INCONCLUSIVE: "Not decided yet for {contender}: {change}.",
}
#: Where it is not the code that differs.
_OF_ONE_COMMIT = {
    Verdict.REGRESSED: "{contender} is worse than {baseline}: {change}.",
    Verdict.IMPROVED: "{contender} is better than {baseline}: {change}.",
    Verdict.TRIVIAL: "{contender} differs from {baseline}, but less than matters: {change}.",
    Verdict.EQUIVALENT: "{contender} performs the same as {baseline}: any difference is proven to "
    "be within the margin.",
    Verdict.INCONCLUSIVE: "Not decided yet between {contender} and {baseline}: {change}.",
}


def summary_of(headline: Headline, sides: tuple[Side, Side]) -> str:
    """The verdict on all in a sentence or two."""
    change = "there are no complete blocks"
    if headline.cell is not None:
        info = metric_for(headline.cell[1])
        title = info.title if info else headline.cell[1]
        change = f"{title[0].lower()}{title[1:]} {format_change(headline.change)}"
        if headline.low is not None and headline.high is not None:
            change += f" ({format_change(headline.low)} to {format_change(headline.high)})"
    names = _names(sides)
    sentences = _OF_ONE_COMMIT if sides[0].commit == sides[1].commit else _SENTENCES
    sentence = sentences[headline.verdict].format(**names, change=change)
    sentence = f"{sentence[0].upper()}{sentence[1:]}" if names["differ"] else sentence
    if headline.cases > 1:
        same = headline.counts.get(headline.verdict, 0)
        sentence += f" {headline.verdict.capitalize()}: {same} of {headline.cases} cases."
    return sentence


def _names(sides: tuple[Side, Side]) -> dict[str, str]:
    """Of two commits their hashes; else what the sides differ in, such as `host ant`."""
    if sides[0].commit != sides[1].commit:
        shas = (side.commit.short_sha for side in sides)
        return dict(zip(("baseline", "contender"), shas, strict=True), differ="")
    words = [side.words() | ({"case": side.case.label} if side.case else {}) for side in sides]
    differ = [name for name in words[1] if words[1][name] != words[0].get(name)]
    told = (
        ", ".join(f"{name} {each[name]}" if name in each else f"any {name}" for name in differ)
        for each in words
    )
    return dict(zip(("baseline", "contender"), told, strict=True), differ=", ".join(differ))


def notes_of(
    cells: Cells, cases: Sequence[CaseComparison], runs: Sequence[RunOfBoth]
) -> tuple[str, ...]:
    """What a reader must know before believing the numbers; the loudest first."""
    return (
        *_unpaired(cases),
        *_where(runs),
        *_left_out(cells),
        *_excluded(cells, cases),
    )


def _unpaired(cases: Sequence[CaseComparison]) -> Iterator[str]:
    alone = len([case for case in cases if not case.paired])
    if alone:
        which = "Both sides were" if alone == len(cases) else f"{alone} cases were"
        yield (f"Unpaired: {which} {UNPAIRED}. Measure both in one run to know what the code does.")


def _where(runs: Sequence[RunOfBoth]) -> Iterator[str]:
    if not runs:
        return
    variants = [variant for run in runs for variant in run.variants]
    apart = Placement.objects.filter(
        job__run__variants__in=variants, role=HostRole.GENERATOR, host__isnull=False
    ).exclude(host=F("job__host"))
    if apart.exists():
        yield "The load came over the network, from another host."
    else:
        yield "Server and load generator shared one machine and talked over loopback."


def _left_out(cells: Cells) -> Iterator[str]:
    left_out = sum(cell.left_out for cell in cells.cells)
    if left_out:
        yield (
            f"{left_out} trials of other versions of the definition, or of the host before it "
            f"changed, were left out: only the newest that both have counts here (version "
            f"{cells.version})."
        )
    if cells.one_sided:
        plural = "cases were" if cells.one_sided > 1 else "case was"
        yield f"{cells.one_sided} {plural} measured on one side only, and left out."


def _excluded(cells: Cells, cases: Sequence[CaseComparison]) -> Iterator[str]:
    exclusions = [
        each for each in (*cells.exclusions, *cells.void.values()) if each.excluded or each.suspect
    ]
    if not exclusions:
        return
    excluded = sum(each.excluded for each in exclusions)
    complete = sum(cell.count for cell in cells.cells if cell.paired)
    suspect = sum(case.suspect_blocks for case in cases if case.paired)
    if excluded:
        blocks = excluded + complete
        yield f"{excluded} of {blocks} blocks were excluded: a trial failed or is invalid."
    if excluded > MAX_EXCLUDED_SHARE * (excluded + complete):
        yield "More than 30 % of the blocks were excluded: do not rely on this comparison."
    if suspect:
        yield f"{suspect} blocks hold a suspect trial; the trials' pages say why."
