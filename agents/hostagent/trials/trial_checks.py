"""The checks of a trial, before and after its loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from ..errors import TrialFailed, UnderLoad
from ..http.checks import run_check
from ..load.load_output import check_end, passing, reduce
from ..sandbox.tls_files import authority
from ..step.plan import Check, Load
from .pass_context import Run
from .services import Running

#: What the load tool may take for one question beyond the question's own time.
_TOOL_S = 10.0


def ask_all(run: Run, parts: Running, words: Mapping[str, str], when: str) -> list[dict[str, Any]]:
    """CHECKED of protocol.py for each check, `when` "before" or "after" the loads.

    TrialFailed at the first that is not answered as it should be; after the loads it is UnderLoad.
    """
    checked = []
    for check in run.trial.checks:
        run.stage.beat()
        checked.append({"when": when, **_ask(run, parts, words, check)})
        if checked[-1]["problem"] is not None:
            raise _failure(parts, check, checked[-1])
    return checked


def _ask(run: Run, parts: Running, words: Mapping[str, str], check: Check) -> dict[str, Any]:
    server = parts.server
    ca = authority(run.stage.step, run.stage.plan)

    def by_tool(argv: Sequence[str]) -> dict[str, Any]:
        return _ask_by_tool(run, words, argv, check.timeout_s)

    try:
        return run_check(server.address, server.port, check, ca, by_tool)
    except OSError as error:
        unknown = dict.fromkeys(("protocol", "status", "length", "sha256", "encoding"))
        return {"name": check.name, "problem": f"no answer ({error})", **unknown}


def _ask_by_tool(
    run: Run, words: Mapping[str, str], argv: Sequence[str], timeout_s: float
) -> dict[str, Any]:
    """What the load tool got for one request; OSError where it got nothing."""
    traces = passing(run.folder, "check")
    load = Load(tuple(argv), {}, "check", timeout_s + _TOOL_S, 0.0)
    outcome = run.put(load, words, traces, lambda _child, _seconds: run.stage.beat())
    if outcome.hung:
        raise TimeoutError(f"the load tool had none within {load.wall_limit_s:g} s")
    check_end(traces, outcome.rc, outcome.hung)
    rows = reduce(traces, run.trial.tool, load)
    if not rows["by_status"]:
        raise ConnectionError(f"the load tool got nothing: {traces.out.read_text()[-500:]}")
    traces.remove()
    length = rows["length"]
    return {
        "status": int(next(iter(rows["by_status"]))),
        "length": length and length["max"],
        "protocol": rows["protocol"],
    }


def _failure(
    parts: Running, check: Check, checked: Mapping[str, Any]
) -> Union[TrialFailed, UnderLoad]:
    after = checked["when"] == "after"
    if after:
        parts.check_alive()
    other = checked["protocol"] not in (None, check.protocol)
    code = "wrong_protocol" if other else "wrong_answer"
    message = f"check {check.name!r} {checked['when']} the load: {checked['problem']}"
    kind = UnderLoad if after else TrialFailed
    return kind(code, message, parts.server.output())
