"""Parsers of results: trials of hosts, imported files, histograms."""

import gzip
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

import yaml
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.test import RequestFactory
from pydantic import TypeAdapter, ValidationError

from orchestrator.api.codespeed import read_form_fields, read_form_json
from orchestrator.benchmarks.commit_matching import CommitMatches
from orchestrator.benchmarks.models import Case, Definition, Project
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.storable_text import check_storable
from orchestrator.importers.github_action import strip_script
from orchestrator.importers.history_values import HistoryFile, HistoryOptions, read_history
from orchestrator.importers.registry import FORMATS, HISTORY_FORMATS
from orchestrator.loadtools.metrics import find_metric
from orchestrator.loadtools.model import ToolOutputError
from orchestrator.measurements.codespeed_results import read_codespeed_values
from orchestrator.measurements.history_plan import (
    HistoryPlan,
    build_results,
    list_reported_commits,
)
from orchestrator.measurements.incoming import ResultIn, build_provenance
from orchestrator.measurements.load_results import read_trial
from orchestrator.measurements.recording import MeasuredRow
from orchestrator.measurements.repeats import ResultConflictError, SentResult, check_alike
from orchestrator.measurements.result_files import Bounds, read_results
from orchestrator.runs.models import Job, Run, Trial
from orchestrator.stats.histogram import Histogram
from tests.fuzz.inputs.mutation import changed_bytes, changed_json, changed_value
from tests.fuzz.inputs.target import Target
from tests.fuzz.inputs.texts import SUITES
from tests.fuzz.inputs.tools import _build_results
from tests.support.histories import build_zip

GOLDEN = Path(__file__).parents[2] / "importers" / "golden"
_RESULT = {
    "benchmark": "hello", "host": "here", "commit": "ab" * 20, "at": "2026-01-31T12:00:00Z",
    "parameters": {"connections": 10, "tls": True}, "metrics": {"latency.p99": 0.01},
    "commit_facts": {"subject": "x", "parents": ["cd" * 20]}, "validity": "suspect",
    "reasons": ["x"], "id": "1", "url": "https://x.org/1",
}  # fmt: skip
_CSV = (
    b"benchmark,host,commit,case.connections,metric.latency.p99,at,validity,reasons,id\n"
    b"hello,here," + b"ab" * 20 + b",10,0.01,2026-01-31T12:00:00Z,suspect,a;b,1\n"
)
_API: TypeAdapter[ResultIn] = TypeAdapter(ResultIn)


def _files(name: str) -> list[bytes]:
    """Return the golden files of a format, preferably small ones."""
    contents = [
        path.read_bytes()
        for path in sorted(GOLDEN.iterdir())
        if not path.name.endswith(".rows.csv") and _find_format(path) == name
    ]
    # Values inside of a script are changed as well.
    contents += [json_only for each in contents if (json_only := strip_script(each)) != each]
    return [each[:20_000] if name == "csv" else each for each in contents]


def _find_format(path: Path) -> str:
    return next(name for name in sorted(FORMATS, reverse=True) if path.stem.startswith(name))


def _import(name: str, given: bytes, _: Path) -> None:
    for row in FORMATS[name].read(given):
        assert row.value is None or row.value == row.value, "not a number came through"


def _histories() -> list[bytes]:
    """Return a file of each format whose results can be a history, and the folder of asv."""
    files = [content for name in HISTORY_FORMATS for content in _files(name)[:1]]
    return [*files, build_zip(dict(_folders()[0]))]


def _read_history(given: bytes, _: Path) -> None:
    file = read_history("upload", given, HistoryOptions(better="lower"))
    for value in file.values:
        assert math.isfinite(value.value), "a number that cannot be stored came through"
        assert find_metric(value.metric) is not None, value.metric
    _convert(file)


def _convert(file: HistoryFile) -> None:
    """Convert a history as its import does, to a project that has none of the commits."""
    nothing = CommitMatches(by_name={}, by_date={})
    plan = HistoryPlan(project=Project(slug="server"), file=file, matches=nothing)
    for commit in list_reported_commits(plan):
        assert re.fullmatch("[0-9a-f]{40}", commit.sha)
        check_storable([commit.subject, commit.author, commit.branch])
    for result in build_results(plan, keep_unknown=True):
        assert result.at is None or result.at.tzinfo is UTC


def _folders() -> list[Any]:
    """Return the files of the folder of asv, with the names of the parameters."""
    content = _files("asv")[0]
    benchmark = next(iter(json.loads(content)["results"]))
    index = {benchmark: {"param_names": ["n", "kind"], "unit": "s"}}
    return [(("a.json", content), ("benchmarks.json", json.dumps(index).encode()))]


def _change_folder(chance: random.Random, sample: Any, _: Sequence[Any]) -> Any:
    place = chance.randrange(len(sample))
    name, content = sample[place]
    changed = (name, changed_json(chance, content, [each for _, each in sample]))
    return (*sample[:place], changed, *sample[place + 1 :])


def _read_folder(given: Any, folder: Path) -> None:
    _read_history(build_zip(dict(given)), folder)


def _posts() -> list[bytes]:
    """Return bodies of the two addresses of Codespeed, as forms."""
    result = {
        "commitid": "ab" * 20, "branch": "default", "project": "Server", "executable": "x",
        "benchmark": "float", "environment": "lab", "result_value": 4.5, "units": "ms",
        "revision_date": "2026-01-31 12:00:00", "std_dev": 1, "lessisbetter": True,
    }  # fmt: skip
    whole = json.dumps([result, {**result, "benchmark": "int"}])
    return [urlencode(each).encode() for each in ({"json": whole}, result)]


def _change_post(chance: random.Random, sample: bytes, others: Sequence[bytes]) -> bytes:
    """Return changed bytes, or a form with changed values in its JSON or its fields."""
    if chance.random() < 0.4:
        return changed_bytes(chance, sample, others)
    fields = dict(parse_qsl(sample.decode()))
    if "json" in fields:
        fields["json"] = json.dumps(changed_value(chance, json.loads(fields["json"])))
    else:
        name = chance.choice(list(fields))
        fields[name] = str(changed_value(chance, fields[name]))
    return urlencode(fields, errors="surrogatepass").encode()


def _read_post(given: bytes, _: Path) -> None:
    """Read a request as both addresses do. They answer other errors of Django with 400 as well."""
    refused: InvalidRequestError | None = None
    for read in (read_form_json, read_form_fields):
        request = RequestFactory().post("/", given, "application/x-www-form-urlencoded")
        try:
            values = read_codespeed_values(read(request))
            for each in values.values():
                _convert(HistoryFile(format="codespeed", values=tuple(each), unknown=0, spread=0))
        except InvalidRequestError as error:
            refused = error
    if refused:
        raise refused


def _result_files() -> list[bytes]:
    line = json.dumps(_RESULT).encode() + b"\n"
    return [line * 2, _CSV, gzip.compress(line, mtime=0), gzip.compress(_CSV, mtime=0)]


def _read_file(given: bytes, folder: Path) -> None:
    packed = given[:2] == b"\x1f\x8b"
    for name in ("results.csv.gz", "results.jsonl.gz") if packed else ("r.csv", "r.jsonl"):
        path = folder / name
        path.write_bytes(given)
        for line in read_results(path):
            assert (line.result is None) != (not line.fault)


_FEW = Bounds(results=5, lines=12, unpacked=4_000)


def _multiply(chance: random.Random, sample: bytes, others: Sequence[bytes]) -> bytes:
    """Repeat lines many times, with empty and blank ones: small files that unpack to large ones."""
    lines = changed_bytes(chance, sample, others).splitlines(keepends=True)
    filling = (b"\n", b" " * 900 + b"\n", b"\r\n", b",\n", b'"a\n",', *lines[:3])
    for _ in range(chance.randrange(6)):
        place = chance.randrange(len(lines) + 1)
        lines[place:place] = [chance.choice(filling)] * chance.choice((1, 5, 50, 500))
    return gzip.compress(b"".join(lines), compresslevel=1, mtime=0)


def _read_bounded(given: bytes, folder: Path) -> None:
    """Read within the bounds. After `skip` the result must be the same as in the whole."""
    for name in ("results.csv.gz", "results.jsonl.gz"):
        path = folder / name
        path.write_bytes(given)
        lines, refused = [], False
        try:
            for line in read_results(path, _FEW):
                lines.append(line)
        except InvalidRequestError:
            refused = True
        assert len(lines) <= 5, "more results than the bound"
        assert all(line.number <= 12 for line in lines), "more lines than the bound"
        if not refused:
            assert list(read_results(path, _FEW, skip=2)) == lines[2:]


def _plain_files() -> list[bytes]:
    line = json.dumps(_RESULT).encode() + b"\n"
    return [line * 3, _CSV]


def _compare_results(given: Any, _: Path) -> None:
    """A result equals itself; the comparison with another one returns texts, or nothing."""
    one, other = _API.validate_python(_RESULT), _API.validate_python(given)
    rows = [_sent(number, each) for number, each in enumerate((one, other))]
    check_alike([rows[1], rows[1]])
    assert _conflicts(rows) == _conflicts(rows[::-1]), "a conflict is one in any order"


def _conflicts(rows: Sequence[SentResult]) -> bool:
    try:
        check_alike(rows)
    except ResultConflictError:
        return True
    return False


def _sent(number: int, result: ResultIn) -> SentResult:
    row = MeasuredRow(
        id=UUID(int=0), benchmark=1, case=1, host=UUID(int=1), commit=1,
        at=result.at or datetime(2026, 1, 1, tzinfo=UTC), validity=result.validity,
        readings=result.metrics, provenance=build_provenance(result, "fuzz"),
    )  # fmt: skip
    return SentResult(place=f"results[{number}]", row=row, timed=result.at is not None)


def _read_result(given: Any, _: Path) -> None:
    """Read one result as the API does. The API translates pydantic's error."""
    result = _API.validate_python(given)
    text = result.model_dump_json()
    text.encode()
    assert "\\u0000" not in text, "a NUL comes through"


def _results() -> list[Any]:
    return [_RESULT]


def _histograms() -> list[bytes]:
    return [
        Histogram.from_counts(values, counts).encode()
        for values, counts in (([], []), ([5], [1]), ([1, 900, 70_000], [3, 200, 1]))
    ]


def _decode(given: bytes, _: Path) -> None:
    histogram = Histogram.decode(given)
    assert histogram.total_count >= 0
    if histogram.total_count:
        assert histogram.percentile(50) >= 0
    assert Histogram.decode(histogram.encode()).total_count == histogram.total_count


def _build_trial_files() -> list[dict[str, Any]]:
    """Return a trial of oha as it comes from a host, with one load and with three."""
    sample = next(each for each in _build_results("oha") if len(each.report) < 4000)
    load = {"load_started_at": 1000.0, "load_ended_at": 1001.0, "argv": ["oha"], "rc": 0}
    return [
        {"result": {**sample.result, "loads": [load] * n, "started_at": 999.0}, "rows": sample.rows,
         "report": json.loads(sample.report)}
        for n in (1, 2)
    ]  # fmt: skip


def _change_trial(chance: random.Random, sample: Any, _: Sequence[Any]) -> Any:
    part = chance.choice(("result", "result", "rows", "report"))
    return {**sample, part: changed_value(chance, sample[part])}


def _read_trial(given: Any, _: Path) -> None:
    files = {"result.json": b"", "tool.json": json.dumps(given["report"]).encode()}
    files["tool-2.json"] = files["tool.json"]
    files["rows.json"] = files["rows-2.json"] = json.dumps(given["rows"]).encode()
    read_trial(_trial(), files, given["result"])


@lru_cache(maxsize=1)
def _trial() -> Trial:
    """Return a trial of a definition that is not stored."""
    spec = yaml.safe_load((SUITES / "hello" / "benchmark.yaml").read_text())
    axes = {name: values[0] for name, values in spec["matrix"].items()}
    definition = Definition(spec=spec, axes=list(axes))
    return Trial(job=Job(run=Run(definition=definition)), case=Case(parameters=axes))


_SHARES = {"csv": 3, "json": 3}
_BY_JSON: Callable[..., bytes] = changed_json
TARGETS = (
    *(
        Target(name=f"import-{name}", samples=partial(_files, name),
               change=changed_bytes if name == "csv" else _BY_JSON, read=partial(_import, name),
               errors=(InvalidRequestError,), share=_SHARES.get(name, 2))
        for name in FORMATS
    ),
    Target(name="history", samples=_histories, change=changed_json, read=_read_history,
           errors=(InvalidRequestError,), share=3),
    Target(name="history-folder", samples=_folders, change=_change_folder, read=_read_folder,
           errors=(InvalidRequestError,), share=3),
    Target(name="codespeed-post", samples=_posts, change=_change_post, read=_read_post,
           errors=(InvalidRequestError, SuspiciousOperation, RequestDataTooBig), share=4),
    Target(name="result-file", samples=_result_files, change=changed_bytes, read=_read_file,
           errors=(InvalidRequestError,), share=3),
    Target(name="result-api", samples=_results, change=lambda chance, each, _: changed_value(
        chance, each), read=_read_result, errors=(ValidationError, UnicodeEncodeError), share=5),
    Target(name="result-bounds", samples=_plain_files, change=_multiply, read=_read_bounded,
           errors=(InvalidRequestError,), share=2),
    Target(name="result-repeat", samples=_results, change=lambda chance, each, _: changed_value(
        chance, each), read=_compare_results, share=2,
           errors=(ValidationError, UnicodeEncodeError)),
    Target(name="histogram", samples=_histograms, change=changed_bytes, read=_decode,
           errors=(ValueError,), share=6),
    Target(name="trial", samples=_build_trial_files, change=_change_trial, read=_read_trial,
           errors=(ToolOutputError, KeyError), share=4),
)  # fmt: skip
