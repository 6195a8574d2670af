"""The suite restful-compression: the rows of its report, and messages of the report's sizes."""

import runpy
from itertools import product
from pathlib import Path

import pytest

from orchestrator.benchmarks.load_specs import build_load_specs
from orchestrator.benchmarks.matrix import build_labels, expand, resolve
from orchestrator.benchmarks.spec import Spec, parse

SUITE = Path(__file__).parents[3] / "agents" / "suites" / "restful-compression"
#: The report's message sizes; it shows levels 3, 4, 5, 7 and 9 of three codings, and none.
SIZES = {"full": 972, "small": 7_649, "medium": 33_918, "large": 138_492, "huge": 1_129_275}
ROWS = [
    *product(SIZES, ["none"], [0]),
    *product(SIZES, ["br", "gzip", "zstd"], [3, 4, 5, 7, 9]),
]


@pytest.fixture(scope="module")
def spec() -> Spec:
    return parse((SUITE / "benchmark.yaml").read_text())


def test_every_row_of_the_report_is_a_case_over_each_protocol(spec: Spec) -> None:
    cases = {tuple(case.parameters.values()) for case in expand(spec)}
    assert len(cases) == 3 * 5 * (1 + 3 * 7)
    assert cases >= {(each, *row, 1) for each in ("h1", "h2", "h3") for row in ROWS}


def test_each_case_has_the_load_of_the_report(spec: Spec) -> None:
    for case in expand(spec):
        (load,) = build_load_specs(spec, case.parameters)
        assert (load.requests, load.connections, load.model) == (1000, 1, "closed")
        assert load.protocol == case.parameters["protocol"]
        assert load.tls is (load.protocol != "h1")
        coding = case.parameters["compression"]
        assert load.compression == (None if coding == "none" else (coding,))
    assert spec.rounds == 3


def test_the_size_of_each_response_is_checked(spec: Spec) -> None:
    for case in expand(spec):
        (check,) = resolve(spec, case.parameters).checks
        size = str(case.parameters["size"])
        assert (check.path, check.length) == (f"/messages/{size}", SIZES[size])
        assert build_labels(spec, case.parameters)["title"].startswith("HTTP/")


def test_messages_have_the_defined_sizes_and_are_reproducible() -> None:
    messages = runpy.run_path(str(SUITE / "messages.py"))
    encoded, message = messages["encoded"], messages["message"]
    assert {size: len(encoded(message(size))) for size in SIZES} == SIZES
    assert encoded(message("medium")) == encoded(message("medium"))


@pytest.mark.parametrize("file", ["requirements.txt"])
def test_installed_packages_are_pinned_by_hash(file: str) -> None:
    text = (SUITE / file).read_text()
    pins = [line for line in text.splitlines() if line and line[0].isalpha()]
    assert pins
    assert all("==" in pin and pin.endswith("\\") for pin in pins)
