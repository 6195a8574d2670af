"""The agent of one host, called through a transport: verbs in, JSON out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from agents.hostagent.bundle import Bundle, build_bundle
from orchestrator.core.errors import HostBusyError, HostError, HostSetupError
from orchestrator.core.spans import span
from orchestrator.core.untrusted_json import parse_json
from orchestrator.dispatch import agent_responses
from orchestrator.transport.base import CommandResult, Transport

#: Python loads only its standard library on the host: a faster start, equal on all hosts.
LEAN = ("-I", "-S")
CALL_TIMEOUT_S = 30.0
#: It ends processes of other steps, which may take 20 s, and asks programs for their versions.
READY_TIMEOUT_S = 120.0
BUNDLE_TIMEOUT_S = 300.0
#: A supervisor has 20 s to end, and what is killed 15 s.
STOP_TIMEOUT_S = 45.0


class AgentError(HostError):
    """The agent refused or failed; the message is from the agent."""


class AgentMissingError(AgentError):
    """This version of the agent is not on the host."""


class SharedFolderError(HostSetupError):
    """Other machines can share the work directory."""


#: Codes of errors of the agent → the error here; others are an AgentError.
_ERRORS: Mapping[str, type[HostError]] = {
    "busy": HostBusyError,
    "network_file_system": SharedFolderError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """The facts of a host, and the reservation that was made on it."""

    facts: dict[str, Any]
    reservation: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness(HostReport):
    """The state of a host before a job: also the commits and files that it has."""

    commits: Mapping[str, bool]
    present: Mapping[str, bool]


class Agent:
    """Calls the agent's verbs on the host behind `transport`; see agents/hostagent/protocol.py."""

    def __init__(self, transport: Transport, *, python: str, bundle: Bundle | None = None) -> None:
        self._transport = transport
        self._python = python
        self._bundle = bundle or _load_bundle()
        self._path = f"agents/{self._bundle.name}"

    def install(self) -> None:
        """Copy the agent to the host."""
        self._transport.put(self._bundle.content, self._path)

    def ready(
        self,
        *,
        repository: str,
        commits: Sequence[str],
        paths: Sequence[str],
        programs: Sequence[str] = (),
        folders: Sequence[str] = (),
        owner: str = "",
        machine_lock: bool = False,
    ) -> Readiness:
        """Prepare the host for a new job: install the agent, and stop all other work of agents.

        `programs`: programs to include in the facts, in addition to the usual ones. `folders`:
        where programs are searched first. Raise HostBusyError if steps of another `owner` run
        there, or if another job has the lock of the machine, with `machine_lock`.
        """
        words = ["--project", repository, "--commits", *commits, "--paths", *paths]
        words += ["--programs", *programs]
        words += ["--folders", *folders] if folders else []
        words += ["--owner", owner] if owner else []
        words += ["--machine-lock"] if machine_lock else []
        answer = self._call(
            "prepare", *words, timeout_s=READY_TIMEOUT_S, form=agent_responses.Ready
        )
        return Readiness(
            facts=answer["facts"],
            commits=answer["commits"],
            present=answer["present"],
            reservation=answer.get("reservation"),
        )

    def facts(self, folders: Sequence[str] = ()) -> HostReport:
        words = ["--folders", *folders] if folders else []
        answer = self._call("facts", *words, form=agent_responses.HostFacts)
        return HostReport(facts=answer["facts"], reservation=answer.get("reservation"))

    def check_idle(self) -> dict[str, Any]:
        """Return the load of other processes: INTERFERENCE of agents/hostagent/protocol.py."""
        return dict(self._call("idle-check", form=agent_responses.IdleCheck)["interference"])

    def begin_outliving(self) -> None:
        """Start a process that should be alive when the connection has ended."""
        self._call("begin-outliving")

    def end_outliving(self) -> bool:
        """End that process, over another connection; return whether it was alive."""
        return bool(self._call("end-outliving", form=agent_responses.Outlived)["alive"])

    def try_user(self, name: str) -> None:
        """Raise AgentError with the reason if measured code cannot run as this user of the host."""
        self._call("check-user", name)

    def start(self, job: str, step: str, secrets: Mapping[str, str] = MappingProxyType({})) -> None:
        """`secrets`: the values of those that the plan names; they are sent as the input."""
        self._call("start", job, step, stdin=json.dumps(dict(secrets)).encode() if secrets else b"")

    def status(self, job: str, step: str, offset: int) -> dict[str, Any]:
        return self._call("status", job, step, "--offset", str(offset), form=agent_responses.Status)

    def stop(self, job: str, step: str) -> str:
        """Return what the host cannot end even by SIGKILL, or ""."""
        answer = self._call(
            "stop", job, step, timeout_s=STOP_TIMEOUT_S, form=agent_responses.Stopped
        )
        return str(answer.get("unkillable") or "")

    def stop_all(self) -> None:
        self._call("stop-all")

    def log(self, job: str, step: str, build: str, offset: int) -> tuple[str, int]:
        """Return the log of a build from byte `offset` on, and the offset of its current end."""
        answer = self._call(
            "log", job, step, build, "--offset", str(offset), form=agent_responses.Log
        )
        return answer["text"], answer["offset"]

    def commits(self, repository: str, *shas: str) -> dict[str, bool]:
        """Return for each of these commits whether the host has it."""
        present = self._call("commits", repository, *shas, form=agent_responses.Present)["present"]
        return {sha: present.get(sha, False) for sha in shas}

    def take_bundle(self, repository: str, name: str) -> None:
        self._call("take-bundle", repository, name, timeout_s=BUNDLE_TIMEOUT_S)

    def has(self, *paths: str) -> dict[str, bool]:
        present = self._call("has", *paths, form=agent_responses.Present)["present"]
        return {path: present.get(path, False) for path in paths}

    def _call(
        self,
        *words: str,
        timeout_s: float = CALL_TIMEOUT_S,
        form: type[BaseModel] | None = None,
        stdin: bytes = b"",
    ) -> dict[str, Any]:
        """Call a verb and return its validated answer.

        Copy the agent first if the host does not have it: the host is new, or a worker with a newer
        version took over the job.
        """
        try:
            answer = self._run(words, timeout_s, stdin)
        except AgentMissingError:
            self.install()
            answer = self._run(words, timeout_s, stdin)
        wrong = agent_responses.describe_problem(form, answer) if form else ""
        if wrong:
            raise AgentError(f"the agent's answer to {words[0]} is not valid: {wrong}")
        return answer

    def _run(self, words: Sequence[str], timeout_s: float, stdin: bytes) -> dict[str, Any]:
        argv = [self._python, *LEAN, self._path, "--root", ".", *words]
        with span(f"agent {words[0]}"):
            done = self._transport.run(argv, timeout_s=timeout_s, stdin=stdin)
            return _answer(self._python, done)


@lru_cache(maxsize=1)
def _load_bundle() -> Bundle:
    """Return the agent's files, which do not change while a worker runs."""
    return build_bundle()


def _answer(python: str, done: CommandResult) -> dict[str, Any]:
    if done.exit_status in {126, 127}:
        raise HostSetupError(
            f"the host cannot run {python}: the agent needs Python 3.9 or newer; "
            "install it, or set the host's Python command"
        )
    if done.exit_status == 2 and b"can't open file" in done.stderr:
        raise AgentMissingError(f"the agent is missing: {done.stderr.decode(errors='replace')}")
    words = done.stderr.decode(errors="replace").strip()[-500:]
    try:
        answer = parse_json(done.stdout)
    except ValueError as error:
        raise AgentError(
            f"the agent ended with status {done.exit_status} and no answer: "
            f"{words or '(no output)'}"
        ) from error
    if not isinstance(answer, dict):
        raise AgentError("the agent's answer is not a JSON object")
    if "error" in answer:
        detail = answer["error"]
        code, message = "", detail
        if isinstance(detail, dict):
            code, message = str(detail.get("code")), detail.get("message")
        kind = _ERRORS.get(code, AgentError)
        raise kind(str(message or "").strip()[:2000] or "the agent failed without a message")
    return answer
