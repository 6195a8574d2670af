"""A server that uses HTTP/2 with a single client, and HTTP/1.1 with several.

One that always falls back is found by the checks before the load (tests/engine/test_protocols.py).
"""

import sys

import pytest

from orchestrator.runs.models import Run
from tests.support.planted_faults import Laboratory, codes, reason
from tests.support.programs import tool

pytestmark = [pytest.mark.engine, pytest.mark.quiet, pytest.mark.django_db, pytest.mark.slow]

SOURCE = """
version: 1
title: HTTP/2 for some
subject:
  start: [%s, falling_back.py, --port, "{port}", --cert, "{cert}", --key, "{key}"]
  ready: {body: "Hello, World!"}
load: {tool: "{client}", protocol: h2, tls: true, connections: 4, duration_s: 1, warmup_s: 0}
matrix: {client: [oha, h2load, k6]}
rounds: 1
cooldown_s: 0
"""


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"PITWALL_K6": str(tool("k6"))}


@pytest.fixture(scope="module")
def run(lab: Laboratory) -> Run:
    return lab.measure("fall-back", SOURCE % sys.executable)


def test_a_load_tool_that_falls_back_with_the_server_reports_it(lab: Laboratory, run: Run) -> None:
    liar, honest = lab.pair(run, client="k6")
    text = reason(liar, "protocol")
    assert text.startswith("h1")
    assert "was used instead of h2" in text
    assert {check["protocol"] for check in liar.provenance["checks"]} == {"h2"}
    assert "protocol" not in codes(honest)
    lab.check_left_out(run, client="k6")


@pytest.mark.parametrize("client", ["oha", "h2load"])
def test_a_load_tool_that_does_not_fall_back_gets_no_response(
    lab: Laboratory, run: Run, client: str
) -> None:
    liar, honest = lab.pair(run, client=client)
    # A connection may have been alone for long enough to get HTTP/2.
    (code,) = codes(liar) & {"no_answers", "transport_errors"}
    assert "h2_protocol × " in reason(liar, code)
    assert liar.validity == "invalid"
    assert not {"no_answers", "transport_errors"} & codes(honest)
