"""The view options of a comparison: the rows of its table, and the axes of its heat map."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from urllib.parse import urlencode

from orchestrator.comparisons.heatmap import METRIC, HeatMap, read_axis_value
from orchestrator.comparisons.ranking import ORDER
from orchestrator.comparisons.report import CaseComparison, ComparisonReport
from orchestrator.stats.comparison import Verdict
from orchestrator.web.templatetags.pitwall import VERDICT_SYMBOLS

#: Rows without a change are shown as long as the table has at most this many rows.
MOST_ROWS = 24
#: A smaller number of rows is not folded.
_LEAST_FOLDED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """The options in the address; all of them may be empty.

    `rows`, `columns` and `metric` belong to the heat map. `row` and `column` are values on these
    axes that limit the table, as does `verdict`. With `all` no row is folded.
    """

    rows: str = ""
    columns: str = ""
    metric: str = ""
    row: str = ""
    column: str = ""
    verdict: str = ""
    all: str = ""

    def query(self, **changes: str) -> dict[str, str]:
        """The parameters for an address."""
        params = {each.name: getattr(self, each.name) for each in fields(self)} | changes
        return {name: value for name, value in params.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A link to the rows of one verdict, or to all of them."""

    title: str
    symbol: str
    cases: int
    query: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSelection:
    """`shown` rows of the table, and `chosen` in all; the others are `folded`, in words.

    `limits` are those from the heat map: (axis, value).
    """

    shown: tuple[CaseComparison, ...]
    chosen: int
    folded: str
    all_query: str
    filters: tuple[Filter, ...]
    limits: tuple[tuple[str, str], ...]
    unlimited_query: str


def parse_view_options(given: Mapping[str, str]) -> ViewOptions:
    values = {each.name: given.get(each.name, "").strip() for each in fields(ViewOptions)}
    if values["verdict"] not in VERDICT_SYMBOLS:
        values["verdict"] = ""
    return ViewOptions(**values)


def select_cases(
    report: ComparisonReport, heat: HeatMap | None, options: ViewOptions, base: Mapping[str, str]
) -> CaseSelection:
    """Return the rows of the table. `base` is the query of the comparison itself."""
    limits = _build_limits(heat, options)
    inside = [
        case
        for case in report.cases
        if all(read_axis_value(case, name) == value for name, _, value in limits)
    ]
    chosen = [case for case in inside if options.verdict in ("", case.verdict)]
    shown = chosen if options.all or options.verdict else _select_unfolded_cases(chosen)

    def query(**changes: str) -> str:
        return urlencode({**base, **options.query(**changes)})

    return CaseSelection(
        shown=tuple(shown),
        chosen=len(chosen),
        folded=_count_text(chosen[len(shown) :]),
        all_query=query(all="1"),
        filters=_build_filters(inside, options, query(verdict="", all="")),
        limits=tuple((title, value) for _, title, value in limits),
        unlimited_query=query(row="", column="", all=""),
    )


def _build_limits(heat: HeatMap | None, options: ViewOptions) -> list[tuple[str, str, str]]:
    if heat is None:
        return []
    pairs = (heat.rows, options.row), (heat.columns, options.column)
    return [(axis.name, axis.title, value) for axis, value in pairs
            if value and axis.name != METRIC]  # fmt: skip


def _select_unfolded_cases(cases: list[CaseComparison]) -> list[CaseComparison]:
    """Return all changed cases, and as many others as fit, in the original order."""
    changed = sum(ORDER[case.verdict] <= ORDER[Verdict.IMPROVED] for case in cases)
    most = max(changed, MOST_ROWS)
    return cases if len(cases) - most < _LEAST_FOLDED else cases[:most]


def _count_text(cases: list[CaseComparison]) -> str:
    """Return a text such as `150 equivalent, 10 inconclusive`; empty for none."""
    counts = Counter(case.verdict for case in cases).most_common()
    return ", ".join(f"{count} {verdict}" for verdict, count in counts)


def _build_filters(
    cases: list[CaseComparison], options: ViewOptions, base: str
) -> tuple[Filter, ...]:
    """Return filters by verdict; none if all cases have the same verdict."""
    counts = Counter(case.verdict for case in cases)
    if len(counts) < 2 and not options.verdict:
        return ()
    one_each = [
        Filter(
            title=verdict,
            symbol=VERDICT_SYMBOLS[verdict],
            cases=counts[verdict],
            query=f"{base}&verdict={verdict}",
            chosen=options.verdict == verdict,
        )
        for verdict in ORDER
        if counts[verdict] or options.verdict == verdict
    ]
    every = Filter(title="all", symbol="", cases=len(cases), query=base, chosen=not options.verdict)
    return (every, *one_each)
