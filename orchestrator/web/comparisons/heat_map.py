"""The heat map of a comparison as its page shows it: the form of its axes, and the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from orchestrator.comparisons.compared import ComparisonReport, MetricComparison
from orchestrator.comparisons.heat import METRIC, Axis, HeatMap, Tile, axes_of, heat_map, metrics_of
from orchestrator.comparisons.rows import ORDER
from orchestrator.core.units import format_change
from orchestrator.stats.comparison import Verdict
from orchestrator.web.comparisons.view_options import Look
from orchestrator.web.templatetags.pitwall import VERDICT_SYMBOLS

#: (value, words, whether it is chosen)
Option = tuple[str, str, bool]
#: Shades of a colour: the last one from so many margins on.
_SHADES = (1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatView:
    """`hidden` are the fields that say of what comparison it is."""

    heat: HeatMap
    head: SafeString
    body: SafeString
    choices: tuple[tuple[str, str, tuple[Option, ...]], ...]
    hidden: tuple[tuple[str, str], ...]
    left_out: str
    several: bool


def heat_view(report: ComparisonReport, look: Look, base: Mapping[str, str]) -> HeatView | None:
    """None where there is nothing to draw; see `heat_map`. `base` is the comparison's query."""
    axes = axes_of(report)
    heat = heat_map(report, axes, rows=look.rows, columns=look.columns, metric=look.metric)
    if heat is None:
        return None
    links = _Links(heat, look, base)
    return HeatView(
        heat=heat,
        head=_head(heat),
        body=mark_safe("\n".join(_line(heat, links, *row) for row in heat.rows.values)),
        choices=_choices(report, axes, heat),
        hidden=(*base.items(), *_kept(look)),
        left_out=_left_out((heat.rows, heat.columns)),
        several=any(tile.cases > 1 for tile in heat.tiles.values()),
    )


class _Links:
    """Where a tile leads: to its only case, or to the rows of all that lie in it."""

    def __init__(self, heat: HeatMap, look: Look, base: Mapping[str, str]) -> None:
        self.case = escape(urlencode(base))
        axes = {"rows": heat.rows.name, "columns": heat.columns.name}
        self.rows = {**base, **look.query(**axes, row="", column="", all="", verdict="")}
        self.by_metric = heat.rows.name == METRIC, heat.columns.name == METRIC

    def of(self, tile: Tile, row: str, column: str) -> str:
        if tile.cases == 1:
            case = tile.case
            return f"case?{self.case}&amp;of={case.case.key}&amp;on={case.host.pk.hex}"
        places = zip(("row", "column"), (row, column), self.by_metric, strict=True)
        limits = {name: value for name, value, is_metric in places if not is_metric}
        return f"?{escape(urlencode({**self.rows, **limits}))}#cases"


def _head(heat: HeatMap) -> SafeString:
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for _, title in heat.columns.values)
    rows, columns = escape(heat.rows.title), escape(heat.columns.title)
    # Every value is escaped; all else are words of our own.
    return mark_safe(f'<tr><th scope="col">{rows} <span class="muted">\\ {columns}</span></th>'
                     f"{titles}</tr>")  # fmt: skip


def _line(heat: HeatMap, links: _Links, row: str, title: str) -> str:
    named = METRIC not in (heat.rows.name, heat.columns.name) and not heat.metric
    cells = "".join(
        _cell(heat.tiles.get((row, column)), links, row, column, named)
        for column, _ in heat.columns.values
    )
    return f'<tr><th scope="row">{escape(title)}</th>{cells}</tr>'


def _cell(tile: Tile | None, links: _Links, row: str, column: str, named: bool) -> str:
    """`named`: which metric it is has to be said."""
    if tile is None:
        return '<td class="none"><span class="visually-hidden">not compared</span></td>'
    change = "" if tile.metric is None else format_change(tile.metric.change)
    told = named and ORDER[tile.verdict] <= ORDER[Verdict.INCONCLUSIVE]
    said = [_short(tile.metric)] if told and tile.metric else []
    if tile.cases > 1:
        said.append(_counts(tile))
    small = f"<small>{' · '.join(said)}</small>" if said else ""
    symbol, word = VERDICT_SYMBOLS[tile.verdict], tile.verdict
    return (
        f'<td data-verdict="{word}" data-shade="{_shade(tile)}">'
        f'<a href="{links.of(tile, row, column)}"><span aria-hidden="true">{symbol}</span>'
        f'<span class="visually-hidden">{word}</span> {change}</a>{small}</td>'
    )


def _short(metric: MetricComparison) -> str:
    family, _, name = metric.key.partition(".")
    return escape(name if family in ("requests", "latency") else family)


def _counts(tile: Tile) -> str:
    """How many are as bad, and what else there is: `▼ 1 ▲ 2 of 12`."""
    told = [
        f"{VERDICT_SYMBOLS[verdict]}&nbsp;{tile.counts[verdict]}"
        for verdict in (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE)
        if tile.counts.get(verdict)
    ]
    return f"{' '.join(told)} of {tile.cases}" if told else f"{tile.cases} cases"


def _shade(tile: Tile) -> int:
    """How strong the colour is: by the change in margins, which makes metrics alike."""
    metric = tile.metric
    if metric is None or metric.change is None or ORDER[tile.verdict] > ORDER[Verdict.IMPROVED]:
        return 0
    share = abs(metric.change) / metric.margin if metric.margin else _SHADES[-1]
    return sum(share >= step for step in _SHADES)


def _choices(
    report: ComparisonReport, axes: Mapping[str, Axis], heat: HeatMap
) -> tuple[tuple[str, str, tuple[Option, ...]], ...]:
    """(name, title, options) of the lists of the form."""

    def of(chosen: str) -> tuple[Option, ...]:
        return tuple((axis.name, axis.title, axis.name == chosen) for axis in axes.values())

    metrics = metrics_of(report)
    shown: list[Option] = [("", "the worst of each case", not heat.metric)]
    shown += [(key, title, key == heat.metric) for key, title in metrics.items()]
    return (
        ("rows", "Rows", of(heat.rows.name)),
        ("columns", "Columns", of(heat.columns.name)),
        ("metric", "Metric", tuple(shown)),
    )


def _kept(look: Look) -> list[tuple[str, str]]:
    return [("verdict", look.verdict)] if look.verdict else []


def _left_out(axes: Sequence[Axis]) -> str:
    """Empty where all is drawn."""
    said = [f"{axis.left_out} more of {axis.title}" for axis in axes if axis.left_out]
    return f"Not drawn: {' and '.join(said)}, in which less changed." if said else ""
