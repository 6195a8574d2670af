"""The program of the documentation, run as the load tool."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.registry import TOOLS

from .running import build_result, measure, read_rows, run, serious, serving

PAGE = Path(__file__).parents[2] / "docs" / "script-tool.md"
TIMED = LoadSpec(
    path="/hello",
    connections=2,
    duration_s=0.4,
    warmup_s=0.2,
    primer_s=0.2,
    command=("{python}", "{tree}/client.py"),
)
COUNTED = replace(TIMED, duration_s=None, requests=50)


@pytest.fixture
def folder(tmp_path):
    """A tree with the program of the page."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "client.py").write_text(source)
    return tmp_path


def program(folder, text):
    (folder / "client.py").write_text(text)


def test_a_duration_is_measured_and_read(folder):
    with serving("target.py") as port:
        reading = measure("script", TIMED, port, folder)
    assert serious(reading) == set()
    assert reading.protocol == "h1"
    assert reading.ok.n > 0
    assert reading.window_start_s == 0.2
    assert reading.readings["requests.rate"] == pytest.approx(reading.ok.n / 0.4)
    assert reading.readings["body.bytes_per_1k"] == 13_000
    assert reading.readings["script.threads_count"] == 2
    assert reading.readings["success.ratio"] == 1.0


def test_a_count_of_requests_begins_after_the_warm_up(folder):
    with serving("target.py") as port:
        reading = measure("script", COUNTED, port, folder)
    assert serious(reading) == set()
    assert reading.by_status == {200: 50}
    assert reading.window_end_s > 0.2


@pytest.mark.parametrize(
    ("answers", "codes", "errors"),
    [
        (("200", "503"), {"http_errors"}, set()),
        (("200", "drop"), {"transport_errors"}, {"broken"}),
        (("never",), {"target_unreachable"}, {"timeout"}),
    ],
)
def test_errors_of_the_script_are_reported(answers, codes, errors, folder):
    # Only what never comes is waited for as long as this.
    limit_s = 0.2 if answers == ("never",) else 30.0
    spec = replace(COUNTED, warmup_s=0.0, request_timeout_s=limit_s, requests=4)
    with serving("cycling.py", *answers) as port:
        reading = measure("script", spec, port, folder)
    assert serious(reading) == codes
    assert set(reading.errors) == errors


def test_the_script_receives_the_definition(folder):
    program(
        folder, "import sys; open('asked', 'w').write(sys.argv[-1]); print('{\"type\":\"done\"}')"
    )
    spec = replace(
        TIMED, primer_s=0, model="open", rate=12.5, body='ü "x"', parameters={"size": "a b", "n": 3}
    )
    left = run("script", spec, 4711, folder)
    definition = json.loads((folder / "asked").read_text())
    assert (definition["port"], definition["rate"], definition["body"]) == (4711, 12.5, 'ü "x"')
    assert definition["url"] == "http://127.0.0.1:4711/hello"
    assert definition["parameters"] == {"size": "a b", "n": 3}
    assert left.argv[0] == sys.executable


def test_a_script_without_requests_fails(folder):
    program(folder, 'print(\'{"type":"done"}\')')
    left = run("script", TIMED, 4711, folder)
    rows = read_rows("script", left)
    reading = TOOLS["script"].parse(TIMED, left.out.read_bytes(), rows, build_result(left))
    assert serious(reading) == {"no_answers"}
