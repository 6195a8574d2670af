"""The text and shape of badges."""

from dataclasses import dataclass

from cli.pitwall.units import format_value
from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.verdict_cache import VerdictCard, load_verdict_cards
from orchestrator.histories.branches import BranchLine, load_branch_line
from orchestrator.histories.histories import Part, load_series_history
from orchestrator.results.models import Series
from orchestrator.runs.selectors import RUNS_PROJECT, load_runs
from orchestrator.runs.states import RunState
from orchestrator.stats.conclusion import FAILING

#: The latest comparison is searched in this many latest runs of a benchmark.
RUNS_LOOKED_AT = 50
_COLOURS = {
    **dict.fromkeys(map(str, FAILING), "#b42318"),
    **dict.fromkeys(("improved", "fixed"), "#166534"),
    "equivalent": "#3d5a80",
}
_UNSURE = "#56615a"
_NUMBER = "#14633a"
#: Widths of characters of the sans-serif fonts of badges, in units of 0.1 pixels at 11 pixels.
#: Other characters are as wide as a digit.
_NARROW = {**dict.fromkeys("il.,:;|!'", 35), **dict.fromkeys("fjrt()/ []-", 45)}
_WIDE = {**dict.fromkeys("mwMW%@", 105), **dict.fromkeys("ABCDEFGHKNOPQRSTUVXYZ", 80)}
_USUAL = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """`title` is the text for screen readers."""

    label: str
    text: str
    colour: str
    title: str

    @property
    def left(self) -> int:
        return _measure_text(self.label)

    @property
    def right(self) -> int:
        return _measure_text(self.text)

    @property
    def width(self) -> int:
        return self.left + self.right

    @property
    def label_x(self) -> float:
        return self.left / 2

    @property
    def text_x(self) -> float:
        return self.left + self.right / 2


def build_value_badge(series: Series, branch: str = "", label: str = "") -> Badge:
    """Return the latest value of a series; "unknown" if no trial of it counts."""
    history = load_series_history(series, branch, Part(limit=1))
    point = next(iter(history.points), None)
    name = label or f"{series.benchmark.slug} {history.title}"
    if point is None or point.value is None:
        return Badge(label=name, text="unknown", colour=_UNSURE, title=f"{name}: unknown")
    text = format_value(point.value, history.unit)
    return Badge(
        label=name,
        text=text,
        colour=_NUMBER,
        title=f"{name}: {text}, commit {point.commit.short_sha}",
    )


def build_verdict_badge(
    member: Member, benchmark: Benchmark, branch: str = "", label: str = ""
) -> Badge:
    """Return the verdict of the latest comparison whose contender is on the branch."""
    name = label or benchmark.slug
    card = _find_newest_card(member, benchmark, branch)
    if card is None:
        return Badge(
            label=name, text="not compared", colour=_UNSURE, title=f"{name}: not compared yet"
        )
    return Badge(
        label=name,
        text=card.verdict,
        colour=_COLOURS.get(card.verdict, _UNSURE),
        title=f"{name}: {card.verdict}, commit {card.contender.short_sha} against "
        f"{card.baseline.short_sha}",
    )


def _find_newest_card(member: Member, benchmark: Benchmark, branch: str) -> VerdictCard | None:
    own = branch not in ("", benchmark.project.default_branch)
    line = load_branch_line(benchmark.project, branch) if own else None
    # A failed run has a verdict if the contender is broken or regressed.
    ended = (RunState.FINISHED, RunState.FAILED)
    of = {f"{RUNS_PROJECT.rpartition('__')[0]}": benchmark, "state__in": ended}
    for run in load_runs(member).filter(**of)[:RUNS_LOOKED_AT]:
        for card in reversed(load_verdict_cards(member, [run])[run.pk]):
            if _is_on(line, card.contender):
                return card
    return None


def _is_on(line: BranchLine | None, commit: Commit) -> bool:
    """Return whether a commit is on a branch; None means the default branch."""
    if line is None:
        return commit.position is not None
    below = line.base is not None and commit.position is not None and commit.position <= line.base
    return commit.pk in line.own or below


def _measure_text(text: str) -> int:
    tenths = sum(_NARROW.get(each) or _WIDE.get(each) or _USUAL for each in text)
    return round(tenths / 10) + 12
