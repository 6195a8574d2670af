"""The processes of a trial on this host: its server, and processes of its services."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from ..builds import installs
from ..builds.build_records import read_digests
from ..builds.server_origin import ServerOrigin, find_problem_of_any
from ..errors import AgentError, BadArgument, BuildFailed, TrialFailed
from ..files import keep_tail, read_tail_text, remove_tree
from ..monitoring.environment import EnvironmentMonitor
from ..monitoring.host_monitor import HostMonitor, MonitoredProcesses
from ..network.commands import SERVER_ADDRESS
from ..paths import StepDir, get_tree_dir, resolve_working_dir
from ..platform.affinity import pin_agent, read_own_cpus
from ..platform.linux.tuning import Tuning
from ..platform.listening_sockets import describe_listening, find_listeners
from ..platform.ports import find_free_port
from ..platform.process_files import read_process_files
from ..platform.process_output import ProcessOutput
from ..platform.processes import Child, build_child_environment
from ..protocol import FILES
from ..sandbox.data_folders import DataFolders
from ..sandbox.directories import Sandbox
from ..sandbox.placeholders import fill_placeholders
from ..sandbox.tls_files import list_tls_placeholders
from ..sandbox.user import Account
from ..sandbox.variables import fill_variables
from ..step.plan import SERVER, Plan, PrepareStep, Program, Server, Service, Trial

GRACE_S = 5.0
LOG_BYTES = 64 * 1024
#: The value of a placeholder of a service: addresses and ports, single or as a list.
_SERVICE_VALUE = re.compile(r"[0-9A-Za-z.:\[\],_-]*\Z")


class TrialProcess:
    """One running process of a trial, and where it listens."""

    def __init__(
        self, name: str, child: Child, address: str, port: int, output: ProcessOutput
    ) -> None:
        self.name = name
        self.port_checked: Optional[bool] = None
        self.first_answer_s: Optional[float] = None
        self.child = child
        self.address = address
        self.port = port
        self.argv: list[str] = []
        self.log = output.path
        self._output = output

    @property
    def applied(self) -> dict[str, Any]:
        """Return its limits as the kernel has them (APPLIED of protocol.py)."""
        return self.child.applied

    @property
    def exit_code(self) -> Optional[int]:
        return self.child.exit_code

    @functools.cached_property
    def listeners(self) -> Optional[set[int]]:
        """Its processes that listen on its port, once it is ready; None if the system does not
        show them."""
        return find_listeners(self.child, self.address, self.port)

    @property
    def has_port(self) -> Optional[bool]:
        """Whether this process listens on its port; None if the system does not show it."""
        return None if self.listeners is None else bool(self.listeners)

    def describe_listening(self) -> str:
        """Return what it does instead of listening on its port; "" if that is unknown."""
        return describe_listening(self.child)

    def output(self) -> str:
        """Return the tail of its log; at the end what the kernel killed for lack of memory."""
        if self.exit_code is not None:
            self._output.finish()
        kills = self.child.oom_kills()
        why = f"\n[kernel: out of memory, processes of {self.name} that it ended: {kills}]"
        return read_tail_text(self.log) + (why if kills else "")

    def stop(self) -> None:
        """Stop its whole process tree, and keep the tail of its log."""
        self.child.stop(GRACE_S)
        self._output.finish()
        keep_tail(self.log, LOG_BYTES)


class LocalHost:
    """This host: it starts processes as its own plan defines them."""

    def __init__(
        self,
        step: StepDir,
        plan: Plan,
        failed_builds: Mapping[str, BuildFailed],
        sandbox: Sandbox,
        data: DataFolders,
        tuning: Tuning,
    ) -> None:
        """`failed_builds`: the failures of this host by tree. `tuning`: that of the step."""
        self._tuning = tuning
        self._failed_builds = failed_builds
        self.sandbox = sandbox
        self._data = data
        self._step = step
        self._plan = plan
        self._environment: Optional[EnvironmentMonitor] = None

    def start(self, trial_id: str, name: str, placeholders: Mapping[str, str]) -> TrialProcess:
        """Start a process, without waiting until it is ready.

        `placeholders`: those of the services; for a prepare step also the server's port, if it
        runs. TrialFailed if it cannot be started, AgentError if the plan has no such process here
        or no such placeholder.
        """
        trial = self._trial(trial_id)
        program = trial.program(name)
        if program is None or program.on != self._plan.me:
            raise AgentError(f"the plan of this host has no process {name} of trial {trial_id}")
        _check_placeholders(trial, program, placeholders)
        failed = self._failed_builds.get(trial.tree)
        if failed is not None:
            raise TrialFailed("build_failed", failed.message, failed.output)
        return self._start(trial, program, name, placeholders)

    def check_build(self, trial_id: str, process: TrialProcess) -> dict[str, Any]:
        """Return BUILT of protocol.py for the server of a trial.

        TrialFailed if the server does not run from the build of the commit.
        """
        tree = self._trial(trial_id).tree
        digests = read_digests(self._step.root, tree)
        listening = map(read_process_files, process.listeners or ())
        files = [each for each in listening if each is not None]
        problem = find_problem_of_any(ServerOrigin(self._step.root, tree), files)
        if problem is not None:
            raise TrialFailed(
                "wrong_build",
                f"the server on port {process.port} does not run from the build of its commit: "
                f"{problem}",
                process.output(),
            )
        known = {} if digests is None else digests._asdict()
        return {"source": None, "build": None, **known, "checked": bool(files)}

    def prepare(self, trial_id: str) -> dict[str, Any]:
        """Create the folder of the trial with its files; return ENVIRONMENT of protocol.py.

        From now on the agent leaves the CPUs of the trial to its processes.
        """
        trial = self._trial(trial_id)
        pin_agent(trial.placement.system)
        self._data.open(trial)
        folder = self._step.trial(trial.id)
        remove_tree(folder)
        folder.mkdir(parents=True)
        for path, text in trial.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text.encode())
        self.sandbox.copy_files(folder / FILES)
        return self.measure_environment()

    def describe_placement(self, trial_id: str) -> dict[str, Any]:
        """Return PLACEMENT of protocol.py."""
        own = read_own_cpus()
        return {
            **self._trial(trial_id).placement.as_json(),
            "agent": None if own is None else sorted(own),
        }

    def find_prepared(self, trial_id: str, number: int) -> Optional[float]:
        """Return how long a prepare step took whose data exist; None if it has to run."""
        trial = self._trial(trial_id)
        return self._data.find(trial.prepare[number], trial.tree)

    def end_prepare_step(self, trial_id: str, number: int, seconds: float) -> None:
        """Record that the prepare step succeeded."""
        trial = self._trial(trial_id)
        self._data.end(trial.prepare[number], trial.tree, seconds)

    def renew_trial_data(self) -> None:
        """Empty {trial_data}."""
        self._data.renew_trial_data()

    def build_placeholders(self, trial: Trial) -> dict[str, str]:
        """Return the placeholders of a trial that all its processes on this host share."""
        folder = self._step.trial(trial.id)
        return {
            **list_tls_placeholders(self._step, self._plan),
            "python": sys.executable,
            "bind": self._get_address(trial),
            "trial_dir": str(folder),
            "files": str(folder / FILES),
            "tree": str(get_tree_dir(self._step.root, trial.tree)),
            **installs.build_placeholders(self._step.root, trial.tree),
            **self._data.placeholders(trial),
        }

    def observe(self) -> None:
        """Begin to measure the environment: no process of a trial runs from now on."""
        self._environment = EnvironmentMonitor()

    def measure_environment(self) -> dict[str, Any]:
        """Return ENVIRONMENT of protocol.py: since `observe`, or from now on."""
        monitor, self._environment = self._environment or EnvironmentMonitor(), None
        return {**monitor.end(), "tuning": self._tuning.as_json()}

    def monitor(self, trial_id: str, processes: Sequence[TrialProcess]) -> HostMonitor:
        """Begin to monitor this host; `processes`: those of the trial on it."""
        trial = self._trial(trial_id)
        server = next((process for process in processes if process.name == SERVER), None)
        return HostMonitor(
            MonitoredProcesses(
                server=server.child if server else None,
                port=server.port if server else None,
                services=[process.child for process in processes if process is not server],
                tool=self._plan.is_lead,
                cpus=trial.cpus_on(self._plan.me, with_tool=self._plan.is_lead),
                logs=[process.log for process in processes],
            ),
            self._tuning.find_changed,
        )

    def _trial(self, trial_id: str) -> Trial:
        trial = self._plan.trial(trial_id)
        if trial is None:
            raise AgentError(f"the plan of this host has no trial {trial_id}")
        return trial

    def _get_address(self, trial: Trial) -> str:
        """Return the address on which the processes of a trial listen."""
        return self._plan.address(self._plan.me) if trial.network is None else SERVER_ADDRESS

    @staticmethod
    def _resolve_working_dir(tree: Path, program: Union[Server, PrepareStep]) -> Path:
        try:
            return resolve_working_dir(tree, program.working_dir)
        except BadArgument as error:
            raise TrialFailed(_choose_start_code(program), error.message) from error

    def _start(
        self,
        trial: Trial,
        program: Program,
        name: str,
        lead_placeholders: Mapping[str, str],
    ) -> TrialProcess:
        folder = self._step.trial(trial.id)
        folder.mkdir(parents=True, exist_ok=True)
        is_step = isinstance(program, PrepareStep)
        address = self._get_address(trial)
        port = 0 if is_step else find_free_port(address, program.port)
        tree = get_tree_dir(self._step.root, trial.tree)
        placeholders = {
            **lead_placeholders,
            **({} if is_step else {"port": str(port)}),
            **self.build_placeholders(trial),
            **self.sandbox.placeholders(),
        }
        argv = fill_placeholders(program.argv, placeholders)
        env = fill_variables(program.env, placeholders, self._plan.secrets)
        output = ProcessOutput(folder / log_name(name), "wb", self._plan.secrets.redactor)
        if not isinstance(program, Service):
            cwd = self._resolve_working_dir(tree, program)
        else:  # A service may run on a host without a build.
            cwd = tree if tree.is_dir() else self.sandbox.cwd(folder)
        env = {**self.sandbox.host_env, **self.sandbox.environment(trial.tree), **env}
        own = build_child_environment(self._step.path, env, trial.path.get(self._plan.me, ()))
        if isinstance(program, PrepareStep):
            self._data.begin(program, trial.tree)
        child = _spawn(argv, own, cwd, output, program, name, self.sandbox.account)
        process = TrialProcess(name, child, address, port, output)
        process.argv = argv
        return process


def log_name(process: str) -> str:
    return f"{process.replace(':', '-')}.log"


def _check_placeholders(trial: Trial, program: Program, placeholders: Mapping[str, str]) -> None:
    """Accept from the lead only placeholders of the plan, and only addresses and ports."""
    names = {
        f"{service.name}_{kind}"
        for service in trial.services
        for kind in ("host", "port", "addresses")
    }
    if isinstance(program, PrepareStep):
        names.add("port")
    for key, value in placeholders.items():
        if key not in names or not isinstance(value, str) or not _SERVICE_VALUE.match(value):
            raise AgentError(f"{key!r} = {value!r} is not a placeholder of trial {trial.id}")


def _spawn(
    argv: list[str],
    env: Mapping[str, str],
    cwd: Path,
    output: ProcessOutput,
    program: Program,
    name: str,
    account: Optional[Account],
) -> Child:
    with output.open() as file:
        try:
            return Child(
                argv,
                cwd=cwd,
                env=env,
                stdout=file,
                stderr=file,
                limits=program.limits,
                name=name,
                adopts=name == SERVER,
                account=account,
            )
        except OSError as error:
            code = _choose_start_code(program)
            raise TrialFailed(code, f"{argv[0]!r} cannot be started: {error}") from error


def _choose_start_code(program: Program) -> str:
    """Return the code of a program that cannot be started."""
    if isinstance(program, PrepareStep):
        return "prepare_failed"
    return "server_did_not_start" if isinstance(program, Server) else "service_not_ready"
