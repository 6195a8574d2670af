"""The checks of a trial, before and after its loads."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Union

from ..errors import TrialFailed, UnderLoad
from ..http.answers import AFTER, BEFORE, AnswerLog, Phase
from ..http.checks import build_checked, check_by_tool
from ..http.sending import Target, build_target, send_once
from ..load.load_output import check_exit_code, get_unmeasured_files, reduce_output
from ..sandbox.tls_files import get_ca_file
from ..step.plan import OWN_CHECK, Check, Load
from .answer_sampler import AnswerSampler, build_request_id
from .pass_context import PassContext
from .services import TrialProcesses

#: How long the load tool may take for one request in addition to the timeout of the check.
_TOOL_S = 10.0
#: How often the load's own request is repeated before the loads, unless its answer takes longer.
REPEATS, REPEATED_S = 2, 1.0


class TrialChecks:
    """The checks of one pass, and the answers to those that are also sent while a load runs."""

    def __init__(
        self, context: PassContext, processes: TrialProcesses, placeholders: Mapping[str, str]
    ) -> None:
        self.log = AnswerLog()
        self._context = context
        self._processes = processes
        self._placeholders = placeholders
        self._target = self._build_target()

    def run(self, phase: Phase) -> list[dict[str, Any]]:
        """Return CHECKED of protocol.py for each check, BEFORE or AFTER the loads.

        Raises TrialFailed at the first check with a problem; after the loads UnderLoad.
        """
        checked = []
        for check in self._context.trial.checks:
            self._context.all_hosts.heartbeat()
            with self._context.all_hosts.on_load_side():
                checked.append(self._run_one(check, phase))
            if checked[-1]["problem"] is not None:
                raise self._build_failure(check, checked[-1])
        return checked

    def _run_one(self, check: Check, phase: Phase) -> dict[str, Any]:
        """Return CHECKED; send a successful request of the load again before the loads."""
        began = time.monotonic()
        checked = {"when": phase.when, **self._run_check(check, phase)}
        is_own = phase == BEFORE and check.during_load and check.name == OWN_CHECK
        if is_own and checked["problem"] is None:
            self._repeat(check, time.monotonic() - began)
        return checked

    def sample(self, load: Load, number: int) -> AnswerSampler:
        """Return the sampler of answers during the load with this number."""
        checks = [check for check in self._context.trial.checks if check.during_load]
        rate = load.rate if self._context.rate is None else self._context.rate
        return AnswerSampler(self._target, checks, self.log, number, rate, load.at_once)

    def _build_target(self) -> Target:
        """Return the server; all checks of a trial use TLS or none does."""
        context, server = self._context, self._processes.server
        ca = get_ca_file(context.all_hosts.step, context.all_hosts.plan)
        tls = any(check.tls for check in context.trial.checks)
        return build_target(server.address, server.port, ca, tls=tls)

    def _repeat(self, check: Check, took_s: float) -> None:
        """Send the load's own request again: its answers show what varies by itself."""
        ready, ready_s = self._context.trial.ready, self._processes.server.first_answer_s
        is_same = (ready.path, ready.protocol) == (check.path, check.protocol)
        # The first answer may have been the one of the readiness.
        self.log.first_s = ready_s if is_same and ready_s is not None else took_s
        for _ in range(REPEATS if took_s <= REPEATED_S else 0):
            began = time.monotonic()
            request_id, extra = build_request_id(check)
            with contextlib.suppress(OSError):
                response = send_once(self._target, check, extra)
                self.log.add(BEFORE, check, response, request_id=request_id)
                self.log.add_later_s(time.monotonic() - began)

    def _run_check(self, check: Check, phase: Phase) -> dict[str, Any]:
        try:
            if check.protocol == "h3":
                return check_by_tool(check, lambda argv: self._request_by_tool(check, argv))
            response = send_once(self._target, check)
        except OSError as error:
            unknown = dict.fromkeys(("protocol", "status", "length", "sha256", "encoding"))
            return {"name": check.name, "problem": f"no answer ({error})", **unknown}
        if check.during_load:
            self.log.add(phase, check, response)
        return build_checked(check, response)

    def _request_by_tool(self, check: Check, argv: Sequence[str]) -> dict[str, Any]:
        """Send one request with the load tool and return the response; OSError without one."""
        context = self._context
        files = get_unmeasured_files(context.folder, "check")
        load = Load(tuple(argv), {}, "check", check.timeout_s + _TOOL_S, 0.0, ())
        outcome = context.run_load(
            load,
            self._placeholders,
            files,
            lambda _child, _seconds: context.all_hosts.heartbeat(),
        )
        if outcome.hung:
            raise TimeoutError(f"the load tool got none within {load.wall_limit_s:g} s")
        check_exit_code(files, outcome.rc, outcome.hung)
        redactor = context.all_hosts.plan.secrets.redactor
        rows = reduce_output(files, context.trial.tool, load, redactor=redactor)
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
        self, check: Check, checked: Mapping[str, Any]
    ) -> Union[TrialFailed, UnderLoad]:
        after = checked["when"] == AFTER.when
        if after:
            self._processes.check_alive()
        other = checked["protocol"] not in (None, check.protocol)
        code = "wrong_protocol" if other else "wrong_answer"
        message = f"check {check.name!r} {checked['when']} the load: {checked['problem']}"
        kind = UnderLoad if after else TrialFailed
        return kind(code, message, self._processes.server.output())
