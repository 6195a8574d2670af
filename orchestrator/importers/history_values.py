"""Turn the rows of a file into values of series: metric, case, host, benchmark and commit."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.storable_text import check_storable
from orchestrator.importers.asv_folder import read_folder
from orchestrator.importers.recognition import recognise_format
from orchestrator.importers.registry import HISTORY_FORMATS, Format
from orchestrator.importers.rows import Better, Row, Scalar, limit_rows
from orchestrator.importers.units import convert_to_base
from orchestrator.importers.uploaded_files import unpack_files
from orchestrator.loadtools.metrics import METRICS
from orchestrator.loadtools.script_metrics import PREFIX

#: The most values of a history, fields and lists of its files, and benchmarks or hosts.
MOST_VALUES = 200_000
MOST_PARTS = 8_000_000
MOST_NAMES = 500
#: Statistics that describe the spread of a value; they are no values of a series.
SPREAD = frozenset({"range", "sd", "min", "max", "q1", "q3", "iqr", "lower", "upper"})
#: Formats whose results may have other statistics than one main value: `median of 3`.
_OWN = ("csv", "json")
#: The host and the benchmark of results that name none.
HOST, BENCHMARK = "imported", "imported"
_LONGEST_SLUG, _LONGEST_NAME, _LONGEST_TEXT = 60, 40, 200
#: Branch names that mean the default branch.
_DEFAULT_BRANCH = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """`format`: empty to recognise it. `benchmark` and `host` replace those of the file.

    `commit` is the commit of results that name none. `better` is the direction of values
    whose direction is not in the file.
    """

    format: str = ""
    benchmark: str = ""
    host: str = ""
    commit: str = ""
    better: Better = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryValue:
    """One value of a series, in the unit of its metric. `place` identifies it in messages.

    `commit` is a hash, an abbreviated hash or any name; empty if the file has only a date.
    """

    place: str
    benchmark: str
    host: str
    parameters: Mapping[str, Scalar]
    metric: str
    value: float
    at: datetime | None
    commit: str
    branch: str
    subject: str
    author: str
    committed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFile:
    """`unknown`: results without a value. `spread`: values that describe the spread of others."""

    format: str
    values: tuple[HistoryValue, ...]
    unknown: int
    spread: int


def read_history(name: str, content: bytes, options: HistoryOptions) -> HistoryFile:
    """Read a file, or the files of a .zip. InvalidRequestError says what is wrong, and where."""
    files = unpack_files(name, content)
    if not files:
        raise InvalidRequestError(f"{name} has no files", field="file")
    _check_parts(files)
    chosen = get_history_format(options.format or recognise_format(files))
    values: list[HistoryValue] = []
    unknown = spread = 0
    for number, row in enumerate(limit_rows(_read_rows(chosen, files)), 1):
        if _is_spread(row, chosen):
            spread += 1
        elif row.value is None:
            unknown += 1
        else:
            values.append(build_value(row, f"value {number}", options, versions=chosen.versions))
        if len(values) > MOST_VALUES:
            raise InvalidRequestError(
                f"a history has at most {MOST_VALUES} values; send it in parts", field="file"
            )
    if not values:
        raise InvalidRequestError(f"{name} has no values", field="file")
    _check_names(values)
    return HistoryFile(format=chosen.name, values=tuple(values), unknown=unknown, spread=spread)


def _check_parts(files: Mapping[str, bytes]) -> None:
    """Refuse many small parts: each takes much more memory than in the file."""
    parts = sum(content.count(mark) for content in files.values() for mark in (b",", b"[", b"{"))
    if parts > MOST_PARTS:
        raise InvalidRequestError(
            f"a history has at most {MOST_PARTS} fields and lists; send it in parts", field="file"
        )


def _check_names(values: Sequence[HistoryValue]) -> None:
    for kind, names in (
        ("benchmark", {value.benchmark for value in values}),
        ("host", {value.host for value in values}),
    ):
        if len(names) > MOST_NAMES:
            raise InvalidRequestError(
                f"the file names {len(names)} {kind}s, and a history has at most {MOST_NAMES}; "
                f"name one {kind} for all results",
                field=kind,
            )


def _is_spread(row: Row, chosen: Format) -> bool:
    if chosen.name in _OWN:
        return row.statistic in SPREAD
    return bool(row.statistic)


def get_history_format(name: str) -> Format:
    """Return the format; InvalidRequestError with the known names if there is none."""
    if name not in HISTORY_FORMATS:
        raise InvalidRequestError(
            f"expected one of the formats {', '.join(HISTORY_FORMATS)}, got {name!r}",
            field="format",
        )
    return HISTORY_FORMATS[name]


def _read_rows(chosen: Format, files: Mapping[str, bytes]) -> Iterator[Row]:
    if chosen.name == "asv" and len(files) > 1:
        return read_folder(files)
    if len(files) > 1:
        raise InvalidRequestError(
            f"expected one file of the format {chosen.name}, got {len(files)}; only results of asv "
            "have several",
            field="file",
        )
    return chosen.read(next(iter(files.values())))


def build_value(
    row: Row, place: str, options: HistoryOptions, *, versions: bool = False
) -> HistoryValue:
    """Return the value of a row; `versions`: its commit is a version of other software."""
    assert row.value is not None, "rows without a value are counted apart"
    try:
        check_storable([row.commit, row.branch, dict(row.parameters)])
    except ValueError as error:
        raise InvalidRequestError(f"{place}: {error}", field=place) from error
    metric, value = _build_metric(row, row.value, options.better)
    commit = "" if versions else row.commit
    return HistoryValue(
        place=place,
        benchmark=build_slug(options.benchmark or row.suite, BENCHMARK),
        host=build_slug(options.host or row.environment, HOST),
        parameters=_build_parameters(row),
        metric=metric,
        value=value,
        at=row.measured_at,
        commit=commit.strip() or options.commit,
        branch="" if row.branch == _DEFAULT_BRANCH else row.branch,
        subject=_clean_line(row.subject, 300),
        author=_clean_line(row.author, 200),
        committed_at=row.committed_at,
    )


def build_slug(text: str, default: str) -> str:
    """Return a text as the slug of a benchmark or host; `default` if nothing of it is left."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return slug[:_LONGEST_SLUG].strip("-") or default


def _build_metric(row: Row, value: float, better: Better) -> tuple[str, float]:
    """Return the key of a metric, and the value in its unit.

    A metric that is none of ours becomes a custom one, whose ending has the unit and the direction.
    """
    if row.metric in METRICS or row.metric.startswith(PREFIX):
        return row.metric, value
    converted, unit = convert_to_base(value, row.unit)
    direction = row.better or better
    name = re.sub(r"[^a-z0-9]+", "_", row.metric.lower()).strip("_")
    for ending in (re.sub(r"[^a-z0-9]+", "_", row.unit.lower()).strip("_"), "per_s", "s"):
        if ending:
            name = name.removesuffix(f"_{ending}")
    name = name if name[:1].isalpha() else f"value_{name}".strip("_")
    return f"{PREFIX}{name[:_LONGEST_NAME].strip('_')}_{_choose_ending(unit, direction)}", converted


def _choose_ending(unit: str, better: Better) -> str:
    """Return the ending of a custom metric (`loadtools.script_metrics`)."""
    ending, usual = _ENDINGS.get(unit, ("count", ""))
    if better in ("", usual):
        return ending
    return better


#: Base unit → (ending, the direction that it implies).
_ENDINGS: Mapping[str, tuple[str, Better]] = {
    "s": ("s", "lower"),
    "1/s": ("per_s", "higher"),
    "B": ("bytes", "lower"),
    "ratio": ("ratio", ""),
}


def _build_parameters(row: Row) -> dict[str, Scalar]:
    """Return the parameters of the case; the branch belongs to the commit instead."""
    parameters: dict[str, Scalar] = {}
    for axis, value in row.parameters.items():
        if axis == "branch" and row.branch:
            continue
        name = re.sub(r"[^a-z0-9]+", "_", axis.lower()).strip("_")
        name = name if name[:1].isalpha() else f"axis_{name}"
        parameters[name[:_LONGEST_NAME].strip("_")] = (
            _shorten(value) if isinstance(value, str) else value
        )
    if row.statistic:
        parameters["statistic"] = _shorten(row.statistic)
    return parameters


def _shorten(text: str) -> str:
    """Return a text that fits; a long one ends with a hash of the whole, so it stays unique."""
    if len(text) <= _LONGEST_TEXT:
        return text
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{text[: _LONGEST_TEXT - 10]}… {digest}"


def _clean_line(text: str, most: int) -> str:
    """Return the first line of a text, as far as the database can store it.

    A text may be long and belong to many values, so only its beginning is read.
    """
    line = text[: 2 * most].partition("\n")[0].replace("\0", "")
    return line.encode(errors="replace").decode()[:most].strip()
