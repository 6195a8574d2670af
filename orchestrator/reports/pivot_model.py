"""The input and the output of a pivot. Pure."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from uuid import UUID

from orchestrator.benchmarks.fields import Scalar, format_axis_value
from orchestrator.runs.states import is_counted
from orchestrator.stats.contests import ContestEntry
from orchestrator.stats.estimates import MeanEstimate
from orchestrator.stats.ranks import RankInterval

MEASURED = "measured"
PUBLISHED = "published"
#: The end of the titles of columns with reference results.
PUBLISHED_SUFFIX = ", published"

Kind = Literal[
    "value", "absent", "unsupported", "invalid", "failed", "skipped", "pending", "unmeasured",
    "untold", "ambiguous",
]  # fmt: skip

#: The text of a cell without a value.
WORDS: Mapping[str, str] = {
    "absent": "–",
    "unsupported": "unsupported",
    "invalid": "invalid",
    "failed": "failed",
    "skipped": "skipped",
    "pending": "waiting",
    "unmeasured": "not measured",
    "untold": "unknown",
    "ambiguous": "several cases",
}


#: A report may exclude the suspect trials of a cell with at least this many valid ones. A contest
#: needs as many blocks.
FEWEST_VALID = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One trial. `values`: metric key → value in the metric's own unit.

    `run` is the number of its run (`hash_run`), `block` that of its block and `build` that of its
    build; `place` is its place in the order of its job, from 1. 0: not known. `interim`: its run
    had interim analyses of its contest. `excluded`: it is suspect, and the report excludes it.
    """

    state: str
    validity: str
    reasons: Sequence[str]
    message: str
    values: Mapping[str, float]
    run: int = 0
    block: int = 0
    place: int = 0
    build: int = 0
    interim: bool = False
    excluded: bool = False

    @property
    def counts(self) -> bool:
        return is_counted(self.state, self.validity) and not self.excluded


class Origin(NamedTuple):
    """The ids of the case, host and commit of an observation."""

    case: int
    host: UUID
    commit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One case of one commit on one host with its trials, or a reference result of it.

    `place`: its value on each axis, label and other dimension. `rest`: the part that it shares with
    its baseline case. `unsupported`: why it cannot be measured. `merged`: percentile → value over
    all trials' requests. `published`: the values of a reference result. `model`: open or closed.
    `trials` are those that count. `version` of the definition, `epoch` of the host and `tool` (the
    load tool with its version) are those of all of them. `other_trials`: the number of trials that
    were measured otherwise (`TriedCell`). `contest`: what it shares with the cases that it is
    compared with in pairs; None without a contest axis.
    """

    place: Mapping[str, Scalar]
    rest: Hashable = ()
    baseline: bool = False
    unsupported: str = ""
    samples: Sequence[Sample] = ()
    merged: Mapping[str, float] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    model: str | None = None
    trials: tuple[UUID, ...] = ()
    version: int | None = None
    epoch: int = 0
    tool: str = ""
    other_trials: int = 0
    origin: Origin | None = None
    contest: Hashable | None = None

    @property
    def is_published(self) -> bool:
        return self.place.get("source") == PUBLISHED

    def get_value(self, dimension: str) -> str:
        """Return its value in a dimension as text; empty without one."""
        value = self.place.get(dimension)
        return "" if value is None else format_axis_value(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value in the unit of `unit`, or why there is none.

    `low` and `high` are its 95 % interval. `trials` of `runs` count, `suspect` of them are suspect;
    `excluded` are invalid, and `excluded_suspects` are suspect ones that do not count. A reference
    result has only a value. `states_unit`: a heading has the unit already. `origin`: the ids of its
    trials' case, host and commit. `tested` stands for it in a ranking; None if it has no interval.
    `entry`: its trials by block, if it is in a contest. `paired`: a change or difference between
    values of common blocks.
    """

    kind: Kind
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    states_unit: bool = False
    decimals: int | None = None
    trials: int = 0
    runs: int = 0
    suspect: int = 0
    excluded: int = 0
    excluded_suspects: int = 0
    reason: str = ""
    baseline: bool = False
    published: bool = False
    origin: Origin | None = None
    tested: MeanEstimate | None = None
    entry: ContestEntry | None = None
    paired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A column of row headings."""

    dimension: str
    title: str


_STATISTICS = {
    "median": "median",
    "mean": "geometric mean",
    "min": "lowest trial",
    "max": "highest trial",
    "merged": "all requests",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column; `unit` is empty if the rows have different ones."""

    title: str
    unit: str
    kind: Literal["value", "change", "difference"]
    metric: str | None
    statistic: str
    better: str | None
    published: bool

    @property
    def statistic_name(self) -> str:
        """Return the statistic in words; empty for columns without one."""
        return _STATISTICS.get(self.statistic, "")

    @property
    def heading(self) -> str:
        """Return the title, with the unit if the title does not contain it."""
        is_complete = not self.unit or names_unit(self.title, self.unit)
        return self.title if is_complete else f"{self.title} ({self.unit})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """`ranks`: the ranks that the row may have; None if it is not ranked. `groups`: the letters of
    its groups in a contest, such as "ab".

    `first_of_group`: another ranking begins. `heads` are display names, and `values` the
    values behind them; that of the metric is its key.
    """

    heads: tuple[str, ...]
    values: tuple[str, ...]
    cells: tuple[Cell, ...]
    baseline: bool
    ranks: RankInterval | None = None
    groups: str = ""
    first_of_group: bool = False

    @property
    def rank_text(self) -> str:
        """Return "2–4", or "2" if only one rank is possible; empty if the row is not ranked."""
        if self.ranks is None:
            return ""
        best, worst = self.ranks
        return f"{best}" if best == worst else f"{best}–{worst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PivotTable:
    """`sorted_by` is the index of a column; `notes` are limits of the values."""

    title: str
    description: str
    heads: tuple[Head, ...]
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    sorted_by: int | None
    notes: tuple[str, ...]

    @property
    def has_groups(self) -> bool:
        """Return whether its ranking is that of a contest."""
        return any(row.groups for row in self.rows)


def names_unit(title: str, unit: str) -> bool:
    """Return whether a heading contains the unit or its own name for it: (MB/s), or Ops/sec."""
    return title.endswith(")") or (unit.endswith("/s") and "/s" in title)
