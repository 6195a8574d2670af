"""The parts of a trial that run on this host: its server, and processes of its services."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from ..builds import installs
from ..errors import AgentError, BuildFailed, TrialFailed
from ..files import remove_tree, tail_bytes, tail_text, write_bytes
from ..monitoring import environment
from ..monitoring.host_monitor import Cast, Sampling
from ..paths import StepDir, tree_dir
from ..platform.listening_sockets import is_of_child
from ..platform.ports import free_port
from ..platform.processes import Child, child_environment
from ..sandbox.directories import Grounds
from ..sandbox.placeholders import replace
from ..sandbox.tls_files import tls_words
from ..sandbox.user import Account
from ..step.plan import SERVER, Plan, Server, Service, Trial

GRACE_S = 5.0
LOG_BYTES = 64 * 1024
#: Addresses and ports, alone or as a list: nothing else is a service's word.
_WORD = re.compile(r"[0-9A-Za-z.:\[\],_-]*\Z")


class Part:
    """One running process of a trial, and where it listens."""

    def __init__(self, name: str, child: Child, address: str, port: int, log: Path) -> None:
        self.name = name
        self.port_checked: Optional[bool] = None
        self.child = child
        self.address = address
        self.port = port
        self.argv: list[str] = []
        self.log = log

    @property
    def applied(self) -> dict[str, Any]:
        """Its limits as the kernel has them (APPLIED of protocol.py)."""
        return self.child.applied

    @property
    def exit_code(self) -> Optional[int]:
        return self.child.exit_code

    @property
    def has_port(self) -> Optional[bool]:
        """Whether it is this part that answers at its port; None where the system does not tell."""
        return is_of_child(self.child, self.address, self.port)

    def output(self) -> str:
        return tail_text(self.log)

    def stop(self) -> None:
        """End it with its whole tree; of its log the end is kept."""
        self.child.stop(GRACE_S)
        write_bytes(self.log, tail_bytes(self.log, LOG_BYTES))


class Here:
    """This host as a place where parts run, each as this host's own plan says."""

    def __init__(
        self, step: StepDir, plan: Plan, broken: Mapping[str, BuildFailed], grounds: Grounds
    ) -> None:
        """`broken`: the trees that could not be built here."""
        self._broken = broken
        self.grounds = grounds
        self._step = step
        self._plan = plan
        self._address = plan.address(plan.me)

    def start(self, trial_id: str, name: str, words: Mapping[str, str]) -> Part:
        """The part, started but not known to be ready.

        `words`: those of the services. TrialFailed where it cannot be started, AgentError where
        the plan has no such part here or no such word.
        """
        trial = self._trial(trial_id)
        program = trial.program(name)
        if program is None or program.on != self._plan.me:
            raise AgentError(f"the plan of this host has no part {name} of trial {trial_id}")
        _check_words(trial, words)
        failed = self._broken.get(trial.tree)
        if failed is not None:
            raise TrialFailed("build_failed", failed.message, failed.output)
        return self._start(trial, program, name, words)

    def prepare(self, trial_id: str) -> dict[str, Any]:
        """Make the trial's folder anew with its files; AMBIENT_BEFORE of protocol.py."""
        trial = self._trial(trial_id)
        self.grounds.open(trial.tree)
        folder = self._step.trial(trial.id)
        remove_tree(folder)
        folder.mkdir(parents=True)
        for name, text in trial.files.items():
            write_bytes(folder / name, text.encode())
        return environment.before()

    def sampling(self, trial_id: str, parts: Sequence[Part]) -> Sampling:
        """Begin to look at this host; `parts`: those of the trial that run on it."""
        trial = self._trial(trial_id)
        server = next((part for part in parts if part.name == SERVER), None)
        return Sampling(
            Cast(
                server=server.child if server else None,
                port=server.port if server else None,
                services=[part.child for part in parts if part is not server],
                tool=self._plan.is_lead,
                cpus=trial.cpus_on(self._plan.me, with_tool=self._plan.is_lead),
            )
        )

    def _trial(self, trial_id: str) -> Trial:
        trial = self._plan.trial(trial_id)
        if trial is None:
            raise AgentError(f"the plan of this host has no trial {trial_id}")
        return trial

    def _start(
        self, trial: Trial, program: Union[Server, Service], name: str, given: Mapping[str, str]
    ) -> Part:
        folder = self._step.trial(trial.id)
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port(self._address, program.port)
        tree = tree_dir(self._step.root, trial.tree)
        words = {
            **given,
            **tls_words(self._step, self._plan),
            "python": sys.executable,
            "port": str(port),
            "bind": self._address,
            "trial_dir": str(folder),
            "tree": str(tree),
            **installs.words(self._step.root, trial.tree),
            **self.grounds.words(),
        }
        argv = replace(program.argv, words)
        env = {key: replace([value], words)[0] for key, value in program.env.items()}
        log = folder / log_name(name)
        # A service may well run on a host that has nothing built.
        cwd = tree if name == SERVER or tree.is_dir() else self.grounds.cwd(folder)
        env = {**self.grounds.environment(trial.tree), **env}
        own = child_environment(self._step.path, env, trial.path.get(self._plan.me, ()))
        child = _spawn(argv, own, cwd, log, program, name, self.grounds.account)
        part = Part(name, child, self._address, port, log)
        part.argv = argv
        return part


def log_name(part: str) -> str:
    return f"{part.replace(':', '-')}.log"


def _check_words(trial: Trial, words: Mapping[str, str]) -> None:
    """A peer gives values to words that the plan has, and no other text."""
    known = {
        f"{service.name}_{kind}"
        for service in trial.services
        for kind in ("host", "port", "addresses")
    }
    for word, value in words.items():
        if word not in known or not isinstance(value, str) or not _WORD.match(value):
            raise AgentError(f"{word!r} = {value!r} is no word of trial {trial.id}")


def _spawn(
    argv: list[str],
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    program: Union[Server, Service],
    name: str,
    account: Optional[Account],
) -> Child:
    with open(log, "wb") as output:
        try:
            return Child(
                argv,
                cwd=cwd,
                env=env,
                stdout=output,
                stderr=output,
                limits=program.limits,
                name=name,
                adopts=name == SERVER,
                account=account,
            )
        except OSError as error:
            code = "server_did_not_start" if name == SERVER else "service_not_ready"
            raise TrialFailed(code, f"{argv[0]!r} cannot be started: {error}") from error
