"""What values of an axis change in a definition, and what a definition of one case is then."""

from textwrap import dedent
from typing import Any

import pytest

from orchestrator.benchmarks.load_specs import (
    check_loads,
    find_unbound_services,
    list_roles,
    list_tools,
)
from orchestrator.benchmarks.matrix import (
    build_labels,
    expand,
    find_unsupported_reason,
    is_baseline,
    resolve,
    resolve_cells,
    resolve_load,
)
from orchestrator.benchmarks.options import find_version_problem, merge_changes
from orchestrator.benchmarks.spec import Spec, from_data, parse
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import DEFINITION

SOURCE = dedent(
    """\
    version: 1
    title: Systems
    requires: {python3: "*"}
    subject:
      env: {MODE: plain, LEVEL: "{rate}"}
      ready: {path: /hello}
    load: {path: /hello, connections: 4, rate: "{rate}", duration_s: 9, warmup_s: 1,
      headers: {accept: text/plain}}
    matrix: {system: [axum, gthread, old], rate: [10, 100], tls: [false, true]}
    options:
      system:
        axum:
          labels: {language: rust, framework: axum}
          requires: {cargo: ">=1.70", python3: ">=3.9"}
          subject:
            build: [[cargo, build, --release]]
            start: ["{tree}/target/release/axum", --port, "{port}"]
            env: {MODE: fast}
        gthread:
          labels: {language: python, framework: falcon}
          subject:
            install: {steps: [[python3, -m, venv, "{installed}"]], files: [requirements.txt]}
            start: ["{installed}/bin/gunicorn", --bind, "{bind}:{port}"]
          services:
            store: {start: [redis-server, --port, "{port}"], role: backend}
          limits: {target: {cpus: 1}}
          load: {tool: wrk, rate: null, headers: {x-wrk: "1"}}
        old:
          unsupported: its compiler is gone
          replacement: axum
          subject: {start: [old]}
      tls:
        "true": {load: {tls: true, tool: oha}}
    include: [{system: axum, rate: 5, tls: false}]
    exclude: [{system: old, rate: [100, 1000]}, {system: gthread, tls: true}]
    baseline: {system: axum, tls: false}
    """
)


@pytest.fixture
def spec() -> Spec:
    return parse(SOURCE)


def cell(system: str, rate: int = 10, tls: bool = False) -> dict[str, Any]:
    return {"system": system, "rate": rate, "tls": tls}


def test_options_merge_mappings_and_replace_other_values(spec: Spec) -> None:
    axum, gthread = resolve(spec, cell("axum")), resolve(spec, cell("gthread"))
    assert axum.subject.env == {"MODE": "fast", "LEVEL": "{rate}"}
    assert axum.subject.build == [["cargo", "build", "--release"]]
    assert gthread.subject.env["MODE"] == "plain"
    assert gthread.load.headers == {"accept": "text/plain", "x-wrk": "1"}
    assert gthread.load.rate is None
    assert (gthread.limits.target.cpus, axum.limits.target.cpus) == (1, None)
    assert list(gthread.services) == ["store"]
    assert not axum.services
    assert axum.requires == {"python3": ">=3.9", "cargo": ">=1.70"}
    assert not axum.options


def test_a_definition_without_options_is_unchanged() -> None:
    spec = parse(DEFINITION)
    assert resolve(spec, {"connections": 4}) is spec
    assert resolve_cells(spec, [{"connections": 4}, {"connections": 8}]) == [spec]


def test_each_different_definition_is_listed_once(spec: Spec) -> None:
    cases = [case.parameters for case in expand(spec)]
    # axum and the old one, each with TLS and without, and gthread.
    assert len(resolve_cells(spec, cases)) == 5


def test_later_axes_win(spec: Spec) -> None:
    cells = {**cell("gthread"), "tls": True}
    load = resolve_load(spec, cells)
    assert (load.tls, load.tool) == (True, "oha")


def test_requirements_of_all_cases_are_collected(spec: Spec) -> None:
    assert list_roles(spec) == {"target", "generator", "backend"}
    assert set(find_unbound_services(spec)) == {"subject", "store"}
    assert set(list_tools(spec)) == {"oha", "wrk"}


def test_labels_of_a_case_are_returned(spec: Spec) -> None:
    assert build_labels(spec, cell("axum")) == {"language": "rust", "framework": "axum"}
    assert build_labels(spec, cell("old")) == {}


def test_unavailable_cases_keep_their_reason(spec: Spec) -> None:
    check_loads(spec)
    assert find_unsupported_reason(spec, cell("old")) == "its compiler is gone"
    assert find_unsupported_reason(spec, cell("axum")) == ""
    assert any(case.parameters["system"] == "old" for case in expand(spec))


def test_include_adds_cases_and_exclude_takes_lists(spec: Spec) -> None:
    labels = [case.label for case in expand(spec)]
    assert labels[-1] == "system axum, rate 5, tls false"
    assert "system old, rate 10, tls false" in labels
    assert not [label for label in labels if label.startswith("system old, rate 100")]
    assert not [label for label in labels if "gthread" in label and "tls true" in label]
    assert len(labels) == 4 + 2 + 2 + 1


def test_an_existing_case_is_not_added_again() -> None:
    source = SOURCE.replace("rate: 5, tls", "rate: 10, tls")
    assert len(expand(parse(source))) == 8


def test_the_baseline_is_named_by_some_axes(spec: Spec) -> None:
    assert is_baseline(spec, cell("axum", 100))
    assert not is_baseline(spec, cell("axum", tls=True))
    assert not is_baseline(parse(DEFINITION), {"connections": 4})


def test_options_survive_storage(spec: Spec) -> None:
    assert from_data(spec.model_dump(mode="json")) == spec


def test_definitions_without_options_keep_their_stored_form() -> None:
    stored = parse(DEFINITION).model_dump(mode="json")
    new = {"measured", "requires", "options", "include", "baseline"}
    assert not new & set(stored)
    assert "install" not in stored["subject"]


WRONG = [
    ("    axum:\n", "    atom:\n", "options.system.atom", "no such value"),
    ("  tls:\n", "  tsl:\n", "options", "tsl is not an axis"),
    ("rate: 5, tls: false", "rate: 5", "include[0]", "tls"),
    ("baseline: {system: axum", "baseline: {system: atom", "baseline.system", "'atom'"),
    ("replacement: axum", "replacement: atom", "options.system.old.replacement", "'atom'"),
    ('cargo: ">=1.70"', 'cargo: "new"', "options.system.axum.requires.cargo", ">=3.11,<4"),
    ("[false, true]}", "[false, true], installed: [1]}", "matrix.installed", "taken"),
    ("files: [requirements.txt]", "files: [../x]", "options.system.gthread.subject.install", ".."),
    ("old:\n", "old:\n      load: {tool: curl}\n", "options.system.old.load.tool", "oha"),
    ("old:\n", "old:\n      title: Old\n", "options.system.old.title", "unknown field"),
]


@pytest.mark.parametrize(("old", "new", "path", "words"), WRONG)
def test_an_invalid_option_is_refused_with_its_path(
    old: str, new: str, path: str, words: str
) -> None:
    assert old in SOURCE
    with pytest.raises(InvalidRequestError) as caught:
        check_loads(parse(SOURCE.replace(old, new, 1)))
    assert str(caught.value).startswith(path) or (caught.value.field or "").startswith(path)
    assert words in str(caught.value)


def test_each_case_must_start_a_server() -> None:
    source = SOURCE.replace('start: ["{installed}/bin/gunicorn", --bind, "{bind}:{port}"]', "")
    with pytest.raises(InvalidRequestError, match=r"system gthread.*subject.start"):
        check_loads(parse(source))
    with pytest.raises(InvalidRequestError, match=r"subject.start"):
        parse(DEFINITION.replace('start: ["{python}", "server.py", "--port", "{port}"]', ""))


def test_the_installed_placeholder_needs_an_install() -> None:
    source = DEFINITION.replace('"{python}", "server.py"', '"{installed}/bin/python", "server.py"')
    with pytest.raises(InvalidRequestError, match=r"subject.start\[0\].*subject.install"):
        parse(source)


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("3.11.2", "*", True),
        (None, "*", True),
        ("3.11.2", ">=3.11,<4", True),
        ("3.9.18", ">=3.11", False),
        ("1.1.1w", ">=1.1.1", True),
        (None, ">=1", False),
        ("unknown", ">=1", False),
    ],
)
def test_versions_are_compared_with_requirements(
    version: str | None, wanted: str, fits: bool
) -> None:
    why = find_version_problem(version, wanted)
    assert (why == "") is fits
    assert fits or wanted in why


def test_merging_changes_neither_input() -> None:
    data, changes = {"a": {"b": 1, "c": [1]}}, {"a": {"c": [2], "d": 3}}
    assert merge_changes(data, changes) == {"a": {"b": 1, "c": [2], "d": 3}}
    assert data == {"a": {"b": 1, "c": [1]}}
