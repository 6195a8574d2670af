"""The checks of a trial, before and after its loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from ..errors import TrialFailed, UnderLoad
from ..http.checks import run_check
from ..load.load_output import check_exit_code, get_unmeasured_files, reduce_output
from ..sandbox.tls_files import get_ca_file
from ..step.plan import Check, Load
from .pass_context import PassContext
from .services import TrialProcesses

#: How long the load tool may take for one request in addition to the timeout of the check.
_TOOL_S = 10.0


def run_checks(
    context: PassContext, processes: TrialProcesses, placeholders: Mapping[str, str], when: str
) -> list[dict[str, Any]]:
    """Return CHECKED of protocol.py for each check, `when` "before" or "after" the loads.

    Raises TrialFailed at the first check with a problem; after the loads UnderLoad.
    """
    checked = []
    for check in context.trial.checks:
        context.all_hosts.heartbeat()
        checked.append({"when": when, **_run_check(context, processes, placeholders, check)})
        if checked[-1]["problem"] is not None:
            raise _build_failure(processes, check, checked[-1])
    return checked


def _run_check(
    context: PassContext, processes: TrialProcesses, placeholders: Mapping[str, str], check: Check
) -> dict[str, Any]:
    server = processes.server
    ca = get_ca_file(context.all_hosts.step, context.all_hosts.plan)

    def by_tool(argv: Sequence[str]) -> dict[str, Any]:
        return _request_by_tool(context, placeholders, argv, check.timeout_s)

    try:
        return run_check(server.address, server.port, check, ca, by_tool)
    except OSError as error:
        unknown = dict.fromkeys(("protocol", "status", "length", "sha256", "encoding"))
        return {"name": check.name, "problem": f"no answer ({error})", **unknown}


def _request_by_tool(
    context: PassContext, placeholders: Mapping[str, str], argv: Sequence[str], timeout_s: float
) -> dict[str, Any]:
    """Send one request with the load tool and return the response; OSError without a response."""
    files = get_unmeasured_files(context.folder, "check")
    load = Load(tuple(argv), {}, "check", timeout_s + _TOOL_S, 0.0, ())
    outcome = context.run_load(
        load, placeholders, files, lambda _child, _seconds: context.all_hosts.heartbeat()
    )
    if outcome.hung:
        raise TimeoutError(f"the load tool got none within {load.wall_limit_s:g} s")
    check_exit_code(files, outcome.rc, outcome.hung)
    rows = reduce_output(files, context.trial.tool, load)
    if not rows["by_status"]:
        raise ConnectionError(f"the load tool got nothing: {files.out.read_text()[-500:]}")
    files.remove()
    length = rows["length"]
    return {
        "status": int(next(iter(rows["by_status"]))),
        "length": length and length["max"],
        "protocol": rows["protocol"],
    }


def _build_failure(
    processes: TrialProcesses, check: Check, checked: Mapping[str, Any]
) -> Union[TrialFailed, UnderLoad]:
    after = checked["when"] == "after"
    if after:
        processes.check_alive()
    other = checked["protocol"] not in (None, check.protocol)
    code = "wrong_protocol" if other else "wrong_answer"
    message = f"check {check.name!r} {checked['when']} the load: {checked['problem']}"
    kind = UnderLoad if after else TrialFailed
    return kind(code, message, processes.server.output())
