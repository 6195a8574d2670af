"""The heat map of a comparison for its page: the form of its axes, and the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from cli.pitwall.units import format_change
from orchestrator.comparisons.heatmap import (
    METRIC,
    Axis,
    HeatMap,
    Tile,
    build_heat_map,
    list_axes,
    list_primary_metrics,
)
from orchestrator.comparisons.ranking import ORDER
from orchestrator.comparisons.report import ComparisonReport, MetricComparison
from orchestrator.stats.comparison import Verdict
from orchestrator.stats.conclusion import FAILING
from orchestrator.stats.multiple_testing import REPORT_ORDER
from orchestrator.web.comparisons.view_options import ViewOptions
from orchestrator.web.templatetags.pitwall import VERDICT_SYMBOLS

#: (value, label, whether it is chosen)
Option = tuple[str, str, bool]
#: A colour has one more shade from each of these changes on, in margins.
_SHADES = (1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileView:
    """`note`: the metric if that is not obvious, and how many cases share the tile."""

    url: str
    verdict: str
    symbol: str
    shade: int
    change: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMapView:
    """`rows`: (title, tiles); a tile is None if nothing was compared.

    `hidden` are the form fields that identify the comparison.
    """

    map: HeatMap
    rows: tuple[tuple[str, tuple[TileView | None, ...]], ...]
    choices: tuple[tuple[str, str, tuple[Option, ...]], ...]
    hidden: tuple[tuple[str, str], ...]
    omitted: str
    has_shared_tiles: bool


def build_heat_map_view(
    report: ComparisonReport, options: ViewOptions, base: Mapping[str, str]
) -> HeatMapView | None:
    """Return None if there is nothing to draw; see `build_heat_map`. `base` is its query."""
    axes = list_axes(report)
    heat = build_heat_map(
        report, axes, rows=options.rows, columns=options.columns, metric=options.metric
    )
    if heat is None:
        return None
    links = _TileLinks(heat, options, base)
    return HeatMapView(
        map=heat,
        rows=tuple((title, _build_row_tiles(heat, links, row)) for row, title in heat.rows.values),
        choices=_build_choices(report, axes, heat),
        hidden=(*base.items(), *_list_kept_options(options)),
        omitted=_describe_omitted((heat.rows, heat.columns)),
        has_shared_tiles=any(tile.cases > 1 for tile in heat.tiles.values()),
    )


class _TileLinks:
    """The address of a tile: that of its only case, or of the rows of all its cases."""

    def __init__(self, heat: HeatMap, options: ViewOptions, base: Mapping[str, str]) -> None:
        self.case = urlencode(base)
        axes = {"rows": heat.rows.name, "columns": heat.columns.name}
        self.rows = {**base, **options.query(**axes, row="", column="", all="", verdict="")}
        self.by_metric = heat.rows.name == METRIC, heat.columns.name == METRIC

    def build_url(self, tile: Tile, row: str, column: str) -> str:
        if tile.cases == 1:
            case = tile.case
            return f"case?{self.case}&case_key={case.case.key}&host_id={case.host.pk.hex}"
        places = zip(("row", "column"), (row, column), self.by_metric, strict=True)
        limits = {name: value for name, value, is_metric in places if not is_metric}
        return f"?{urlencode({**self.rows, **limits})}#cases"


def _build_row_tiles(heat: HeatMap, links: _TileLinks, row: str) -> tuple[TileView | None, ...]:
    names_metric = METRIC not in (heat.rows.name, heat.columns.name) and not heat.metric
    tiles = ((column, heat.tiles.get((row, column))) for column, _ in heat.columns.values)
    return tuple(
        _build_tile_view(tile, links.build_url(tile, row, column), names_metric=names_metric)
        if tile
        else None
        for column, tile in tiles
    )


def _build_tile_view(tile: Tile, url: str, *, names_metric: bool) -> TileView:
    notes = []
    if tile.metric and names_metric and ORDER[tile.verdict] <= ORDER[Verdict.INCONCLUSIVE]:
        notes.append(_shorten_name(tile.metric))
    if tile.cases > 1:
        notes.append(_format_case_counts(tile))
    return TileView(
        url=url,
        verdict=tile.verdict,
        symbol=VERDICT_SYMBOLS[tile.verdict],
        shade=_choose_shade(tile),
        change="" if tile.metric is None else format_change(tile.metric.change),
        note=" · ".join(notes),
    )


def _shorten_name(metric: MetricComparison) -> str:
    family, _, name = metric.key.partition(".")
    return name if family in ("requests", "latency") else family


def _format_case_counts(tile: Tile) -> str:
    """Return how many cases are as bad, and the other counts: `▼ 1 ▲ 2 of 12`."""
    counts = [
        f"{VERDICT_SYMBOLS[verdict]}\u00a0{tile.counts[verdict]}"
        for verdict in REPORT_ORDER
        if tile.counts.get(verdict) and ORDER[verdict] <= ORDER[Verdict.INCONCLUSIVE]
    ]
    return f"{' '.join(counts)} of {tile.cases}" if counts else f"{tile.cases} cases"


def _choose_shade(tile: Tile) -> int:
    """Return the strength of the colour by the change in margins; the highest for a failure."""
    if tile.verdict in FAILING and tile.verdict != Verdict.REGRESSED:
        return len(_SHADES)
    metric = tile.metric
    if metric is None or metric.change is None or ORDER[tile.verdict] > ORDER[Verdict.IMPROVED]:
        return 0
    share = abs(metric.change) / metric.margin if metric.margin else _SHADES[-1]
    return sum(share >= step for step in _SHADES)


def _build_choices(
    report: ComparisonReport, axes: Mapping[str, Axis], heat: HeatMap
) -> tuple[tuple[str, str, tuple[Option, ...]], ...]:
    """Return (name, title, options) of the lists of the form."""

    def list_options(chosen: str) -> tuple[Option, ...]:
        return tuple((axis.name, axis.title, axis.name == chosen) for axis in axes.values())

    metrics = list_primary_metrics(report)
    shown: list[Option] = [("", "the worst of each case", not heat.metric)]
    shown += [(key, title, key == heat.metric) for key, title in metrics.items()]
    return (
        ("rows", "Rows", list_options(heat.rows.name)),
        ("columns", "Columns", list_options(heat.columns.name)),
        ("metric", "Metric", tuple(shown)),
    )


def _list_kept_options(options: ViewOptions) -> list[tuple[str, str]]:
    return [("verdict", options.verdict)] if options.verdict else []


def _describe_omitted(axes: Sequence[Axis]) -> str:
    """Return a note about values that are not drawn; empty if all are."""
    parts = [f"{axis.omitted} more of {axis.title}" for axis in axes if axis.omitted]
    return f"Not shown: {' and '.join(parts)}, in which less changed." if parts else ""
