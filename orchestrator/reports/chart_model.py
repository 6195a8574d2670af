"""The data of the charts of a report, as they are drawn. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One value with its interval; `shown` is the text of its cell, `hint` all of it in words."""

    value: float
    low: float | None
    high: float | None
    published: bool
    shown: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarSeries:
    """For each row a mark, or the word for a missing value. `number` is that of its colour."""

    title: str
    number: int
    published: bool
    marks: tuple[Mark | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    axis: str
    labels: tuple[str, ...]
    series: tuple[BarSeries, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`number` is that of its colour, from 0. `points`: (x, mark). `level`: a mark without x."""

    title: str
    number: int
    published: bool
    points: tuple[tuple[float, Mark], ...]
    level: Mark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """`ticks` of the horizontal axis: (position, label); empty if they follow from the numbers."""

    x_title: str
    y_title: str
    log: bool
    panels: tuple[Panel, ...]
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """`cells`: for each row, a mark or the word for a missing value. `better`: higher or lower."""

    unit: str
    better: str
    log: bool
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Mark | str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """The ranks from `best` to `worst` that a row may have; `place` is its rank by its value."""

    label: str
    best: int
    worst: int
    place: int
    shown: str
    first_of_group: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RankChart:
    axis: str
    rows: tuple[RankRow, ...]


ChartData = BarChart | LineChart | HeatMap | RankChart


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A chart of a part of its table; `note` names what it leaves out."""

    data: ChartData
    note: str = ""
