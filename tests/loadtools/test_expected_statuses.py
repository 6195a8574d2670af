"""The statuses of good responses: the tools themselves, and what the requests around them check."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.load_specs import build_load_specs, check_loads
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.spec import parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.dispatch.http_checks import build_checks
from orchestrator.loadtools.metrics import find_metric
from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.registry import TOOLS
from tests.support.factories import DEFINITION

from .running import measure, serving

REDIRECT = LoadSpec(path="/status/302", connections=2, requests=40)
WRK = "tool: wrk\n  warmup_s: 0\n  duration_s: 1"


@pytest.mark.parametrize("name", ["oha", "h2load", "k6"])
def test_a_redirect_is_an_error_unless_it_is_expected(name: str, tmp_path: Path) -> None:
    folders = tmp_path / "wrong", tmp_path / "right"
    for folder in folders:
        folder.mkdir()
    with serving("target.py") as port:
        wrong = measure(name, REDIRECT, port, folders[0])
        right = measure(name, replace(REDIRECT, good_statuses=(200, 302)), port, folders[1])

    assert "http_errors" in wrong.validity.codes
    (message,) = [each.message for each in wrong.validity.reasons if each.code == "http_errors"]
    assert "40 of 40 answers had a status other than 200" in message
    assert (wrong.ok.n, wrong.readings["success.ratio"]) == (0, 0.0)
    assert wrong.readings["status.302.ratio"] == 1.0
    assert "requests.rate" not in wrong.readings
    assert "http_errors" not in right.validity.codes
    assert (right.ok.n, right.readings["success.ratio"]) == (40, 1.0)
    assert "status.302.ratio" not in right.readings


def test_the_share_of_a_status_is_a_metric_without_a_verdict() -> None:
    metric = find_metric("status.302.ratio")
    assert metric is not None
    assert (metric.title, metric.informational) == ("Answers with status 302", True)
    assert find_metric("status.0302.ratio") is find_metric("status..ratio") is None


@pytest.mark.parametrize(
    ("load", "checked"),
    [
        ("duration_s: 2\n  warmup_s: 0", None),  # oha reports each status of the load
        (WRK, [200]),
        (f"{WRK}\n  expect: {{status: 204}}", [204]),
        (f"{WRK}\n  expect: {{status: [204, 200]}}", [200, 204]),
    ],
)
def test_the_request_before_the_load_checks_what_its_tool_cannot(
    load: str, checked: list[int] | None
) -> None:
    spec = parse(DEFINITION.replace("warmup_s: 0.2", "").replace("duration_s: 0.6", load))
    parameters = expand(spec)[0].parameters
    (built,) = build_load_specs(spec, parameters)
    own = build_checks(spec, parameters, TOOLS[spec.load.tool], built)[0]
    assert (own["name"], own["statuses"]) == ("load", checked)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ("duration_s: 1\n  expect: {status: 99}", "load.expect.status"),
        ("duration_s: 1\n  expect: {status: []}", "load.expect.status"),
        ("duration_s: 1\n  expect: {statuses: 200}", "did you mean status"),
        (f"{WRK}\n  expect: {{status: 404}}", "wrk counts status 404 as an error"),
        (
            "duration_s: 1\n  expect: {volatile: ['(']}",
            "load.expect.volatile[0]: '(' is no regular expression of Python: missing )",
        ),
        (f"duration_s: 1\n  expect: {{volatile: [{'a' * 201}]}}", "load.expect.volatile[0]"),
        (
            "duration_s: 1\n  warmup_s: 0\n  protocol: h3\n  tls: true\n  expect: {volatile: []}",
            "load.expect.volatile: needs a path, and another protocol than h3",
        ),
        (
            "duration_s: 1\n  tool: script\n  command: [run]\n  expect: {status: 200}",
            "a script reports itself what succeeded: leave expect out",
        ),
    ],
)
def test_an_expectation_that_cannot_be_checked_is_rejected(load: str, message: str) -> None:
    source = DEFINITION.replace("warmup_s: 0.2", "").replace("duration_s: 0.6", load)
    with pytest.raises(InvalidRequestError) as caught:
        check_loads(parse(source))
    assert message in str(caught.value)


def test_a_definition_without_an_expectation_keeps_its_digest() -> None:
    assert "expect" not in parse(DEFINITION).model_dump()["load"]
    source = DEFINITION.replace("duration_s: 0.6", "duration_s: 0.6\n  expect: {status: 404}")
    assert parse(source).model_dump()["load"]["expect"] == {"status": 404}


def plan_checks(load: str, checks: str = "", more: str = "") -> list[dict[str, Any]]:
    """Return the checks of the definition with these parts, in the plan of a round."""
    source = DEFINITION.replace("warmup_s: 0.2", "").replace("duration_s: 0.6", load)
    spec = parse(f"{source}{more}\nchecks: [{checks}]\n")
    parameters = expand(spec)[0].parameters
    (built,) = build_load_specs(spec, parameters)
    return build_checks(spec, parameters, TOOLS[spec.load.tool], built)


def test_only_requests_that_change_nothing_are_sent_during_the_load() -> None:
    checks = "{path: /a}, {path: /b, method: POST}, {path: /c, method: HEAD}"
    closed = "duration_s: 2\n  warmup_s: 0"
    sampled = [each["during_load"] for each in plan_checks(closed, checks)]
    assert sampled == [True, True, False, True]
    # The load sends its own request anyway.
    own = plan_checks(f"{closed}\n  method: POST\n  expect: {{volatile: ['[0-9]+']}}")[0]
    assert (own["during_load"], own["volatile"]) == (True, ["[0-9]+"])


def test_a_script_is_not_expected_to_send_the_request_of_the_load() -> None:
    script = "duration_s: 2\n  warmup_s: 0\n  tool: script\n  command: [run]"
    assert [each["during_load"] for each in plan_checks(script, "{path: /a}")] == [False, True]
    client = plan_checks(script, "{path: /a}", "\nmeasured: client")
    assert [each["during_load"] for each in client] == [False, False]
