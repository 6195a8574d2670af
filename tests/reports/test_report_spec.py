"""The YAML of a report, and the errors of an invalid one."""

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.report_spec import parse, parse_all, to_yaml
from orchestrator.reports.spec_fields import find_known_metric

WHOLE = """\
version: 1
name: protocols
title: Protocols
benchmark: server/hello
commit: main
cases: size == 1024
names: {protocol: {h1: HTTP/1.1}}
published: columns
prose: |
  # Two lines

  *of Markdown*: "quoted"
tables:
  - title: Rates
    rows: [system, {dimension: protocol, title: Spoken}]
    columns:
      - {title: Ops, metric: requests.rate, statistic: mean, unit: ops/s, decimals: 1}
      - {title: "{host}", metric: latency.p12.5, statistic: merged, across: [host]}
      - {title: Gain, metric: requests.rate, relative: true}
      - {title: Less, difference: [Ops, Ops]}
    sort: {column: Ops}
    charts: [{kind: ranks}, {kind: lines, x: system, panels: protocol, scale: log}]
  - rows: [metric]
    metrics: [{metric: latency.p99, unit: ms}]
    columns: [{title: All, where: rate >= 100}]
"""


def build(line: str) -> str:
    return f"version: 1\ntitle: T\ntables:\n  - rows: [a]\n    columns: [{{{line}}}]\n"


def test_a_report_survives_parsing_and_writing():
    spec = parse(WHOLE)
    assert [row.heading for row in spec.tables[0].rows] == ["System", "Spoken"]
    assert parse(to_yaml(spec)) == spec


def test_any_percentile_is_accepted():
    assert find_known_metric("latency.p10").title == "Latency p10"
    assert find_known_metric("latency.p99.95").unit == "s"
    assert find_known_metric("latency.p0") is None
    assert find_known_metric("latency.p100") is None


@pytest.mark.parametrize(
    ("source", "path", "words"),
    [
        ("title: T", "version", "missing"),
        ("[", None, "not valid YAML: line 1"),
        ("just words", None, "expected a mapping"),
        (WHOLE.replace("mean, unit", "average, unit"), "tables[0].columns[0].statistic", "median"),
        (build("metric: latency.p"), "tables[0].columns[0].metric", "no metric latency.p"),
        (build("metric: requests.rate, unit: ms"), "tables[0].columns[0].unit", "req/s"),
        (build("metric: requests.rate, statistic: merged"), "tables[0].columns[0].statistic",
         "percentiles"),
        (build("metric: requests.rate, where: a ="), "tables[0].columns[0].where", "be parsed"),
        (build("title: T"), "tables[0].columns[0].metric", "missing"),
        (build("difference: [A, B], title: C"), "tables[0].columns[0].difference", "no column 'A'"),
        (build("difference: [A, B]"), "tables[0].columns[0].title", "a difference needs one"),
        (build("metric: requests.rate, across: [metric]"), "tables[0].columns[0].across", "rows"),
        (WHOLE.replace("rows: [metric]", "rows: [size]"), "tables[1].columns[0].metric", "missing"),
        (WHOLE.replace("rows: [metric]", "rows: [metric, metric]"), "tables[1].rows", "twice"),
        (build("metric: requests.rate") + "    sort: X\n", "tables[0].sort.column", "no column"),
        (WHOLE.replace("cases: size == 1024", "cases: size =="), "cases", "cannot be parsed"),
        (WHOLE.replace("published: columns", "colour: red"), "colour", "unknown field"),
    ],
)  # fmt: skip
def test_an_invalid_report_is_refused_with_the_path(source, path, words):
    with pytest.raises(InvalidRequestError) as caught:
        parse(source)
    assert words in str(caught.value)
    assert caught.value.field == path


def test_a_file_may_contain_several_reports():
    several = "reports:\n" + "".join(
        "- " + WHOLE.replace("\n", "\n  ").replace("name: protocols", f"name: {name}").rstrip()
        + "\n"
        for name in ("one", "two")
    )  # fmt: skip
    assert [spec.name for spec in parse_all(several)] == ["one", "two"]
    assert [spec.name for spec in parse_all(WHOLE)] == ["protocols"]
    head, tail = several.rsplit("title: Protocols", 1)
    hint = r"reports\[1\]\.titel: unknown field titel; did you mean title\?"
    with pytest.raises(InvalidRequestError, match=hint):
        parse_all(f"{head}titel: Protocols{tail}")
