"""The types of a plan, which plan_parser.py reads and checks.

They are named tuples because dataclasses take 10 ms longer to load at the start of each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Optional, Union

from ..platform.placement import Placement, Share
from .secret_values import NO_SECRETS, SecretValues

LOOPBACK = "127.0.0.1"
#: The name of the server process; a process of a service is `service:<name>:<n>`.
SERVER = "server"
#: The reader of a script in place of a load tool (docs/script-tool.md).
SCRIPT = "script"
#: The name of the check with the request of the load.
OWN_CHECK = "load"


class SecretName(NamedTuple):
    """In place of the value of an environment variable: the secret that has it."""

    name: str


Environment = Mapping[str, Union[str, SecretName]]


def get_prepare_name(number: int) -> str:
    """Return the name of the process of a prepare step; `number`: from 0."""
    return f"prepare:{number + 1}"


#: Before the round begins.
NOWHERE = Placement({})


class Limits(NamedTuple):
    """None = no limit. `cpu_quota` is in CPUs: 0.5 is half of one.

    `share`: the name of the share whose CPUs are used; `cpus`: those of its placement on this host.
    """

    share: Optional[str] = None
    cpus: Optional[tuple[int, ...]] = None
    cpu_quota: Optional[float] = None
    memory_bytes: Optional[int] = None
    open_files: Optional[int] = None


class Install(NamedTuple):
    """The name of the install is a hash of `key` and of `files` in the tree.

    `files` names files, folders with all they contain, or WHOLE_COMMIT. `repositories`: those of
    the build that the steps use; `key` depends on their commits.
    """

    key: str
    files: tuple[str, ...]
    repositories: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    timeout_s: float


class Submodule(NamedTuple):
    """The archive of the files of a folder `path` in a tree."""

    path: str
    archive: str


class Source(NamedTuple):
    """The files of a commit: from `archive` or `repository`, and then its submodules.

    `lfs_files`: an archive of files that replace the pointers of Git LFS among them. `problem`: why
    there is neither; then the build fails.
    """

    commit: str
    archive: Optional[str]
    repository: Optional[str]
    problem: Optional[str]
    submodules: tuple[Submodule, ...]
    lfs_files: Optional[str]


class Build(NamedTuple):
    """A build of a commit with one recipe.

    `label`: the name of the recipe, only for events. `working_dir`: the folder of the tree in which
    all steps run; None = the tree itself. `repositories`: other commits that it uses, by name.
    """

    id: str
    label: str
    commit: str
    source: Source
    repositories: Mapping[str, Source]
    tree: str
    on: tuple[str, ...]
    path: tuple[str, ...]
    install: Optional[Install]
    working_dir: Optional[str]
    steps: tuple[tuple[str, ...], ...]
    env: Environment
    timeout_s: float


class Ready(NamedTuple):
    """The response of a process that is ready.

    `path` None: a connection is enough, with `tls` a handshake. `protocol`: h1, h2 or grpc.
    """

    path: Optional[str]
    status: int
    body: Optional[str]
    timeout_s: float
    protocol: str = "h1"
    tls: bool = False


class Expected(NamedTuple):
    """`kind`: "text", "length" (`value` is a whole number), "sha256" or "matches"."""

    kind: str
    value: Union[str, int]


class Check(NamedTuple):
    """One request to the server and the expected response; None is reported but not checked.

    `argv`: the load tool's command line for the request, with HTTP/3 only. `during_load`: whether
    it is also sent while a load runs. `volatile`: patterns of the parts of the body that may vary.
    """

    name: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: Optional[bytes]
    protocol: str
    tls: bool
    timeout_s: float
    argv: Optional[tuple[str, ...]]
    statuses: Optional[tuple[int, ...]]
    response_headers: Mapping[str, str]
    response: Optional[Expected]
    encoding: Optional[str]
    grpc_status: Optional[int]
    during_load: bool = False
    volatile: tuple[str, ...] = ()


class Server(NamedTuple):
    """`working_dir`: it starts in this folder of the tree; None = the tree itself."""

    on: str
    working_dir: Optional[str]
    argv: tuple[str, ...]
    env: Environment
    limits: Limits
    port: Optional[int]


class Service(NamedTuple):
    name: str
    on: str
    processes: int
    argv: tuple[str, ...]
    env: Environment
    limits: Limits
    port: Optional[int]
    ready: Ready

    @property
    def process_names(self) -> tuple[str, ...]:
        return tuple(f"service:{self.name}:{n}" for n in range(1, self.processes + 1))


class PrepareStep(NamedTuple):
    """A command that prepares data, on the host of the server and within the server's limits.

    `each`: it runs once per "job", "commit" or "trial". `after`: it runs after the "build", the
    "services" or the "server". `key` identifies the step with all that it depends on.
    """

    on: str
    key: str
    argv: tuple[str, ...]
    env: Environment
    working_dir: Optional[str]
    limits: Limits
    timeout_s: float
    each: str
    after: str

    @property
    def port(self) -> None:
        """Return None: it does not listen."""


#: A process of a trial.
Program = Union[Server, Service, PrepareStep]


class Load(NamedTuple):
    """`warmup_s`: rows that start before it are warm-up. `kind`: primer, warmup or measure.

    `good_statuses`: the HTTP statuses that count as good, or those of gRPC. `rate`: requests per
    second of an open load. `at_once`: concurrent requests of a closed one.
    """

    argv: tuple[str, ...]
    env: Environment
    kind: str
    wall_limit_s: float
    warmup_s: float
    good_statuses: tuple[int, ...]
    rate: Optional[float] = None
    at_once: int = 1


class Objective(NamedTuple):
    """One condition for a probe, such as "latency.p99" < 0.05 or "success" >= 0.99."""

    metric: str
    op: str
    value: float


class Search(NamedTuple):
    """A capacity search. Rates in requests per second; `duration_s`: the window of a pass.

    `requests`: how many must be due in a probe, so that the percentiles of the objective are known.
    """

    objective: tuple[Objective, ...]
    low: float
    high: float
    duration_s: float
    requests: int
    max_probes: int
    confirmations: int


class Tool(NamedTuple):
    """`reader`: a key of readers/registry.py. `cpus`: the number of threads in its command."""

    name: str
    path: str
    limits: Limits
    reader: str
    cpus: int

    @property
    def is_measured_code(self) -> bool:
        """Whether it is a script of the definition and not a load tool."""
        return self.reader == SCRIPT


class Network(NamedTuple):
    """The emulated network between the load tool and the server.

    `delay_s`: added to a round trip, half in each direction; it varies by up to `jitter_s`. `loss`:
    the share of packets that is lost in each direction. `rate_bps`: bits per second in each one.
    """

    delay_s: float
    jitter_s: float
    loss: float
    rate_bps: Optional[float]


class Trial(NamedTuple):
    """`files`: by path, the texts that are written into the trial's folder before its start.

    `path`: by host, the first folders on the PATH of its processes. `shares`: by host, who gets
    CPUs there. `placement`: the result on this host, once its round has begun.
    """

    id: str
    tree: str
    commit: str
    path: Mapping[str, tuple[str, ...]]
    server: Server
    ready: Ready
    checks: tuple[Check, ...]
    services: tuple[Service, ...]
    prepare: tuple[PrepareStep, ...]
    loads: tuple[Load, ...]
    search: Optional[Search]
    files: Mapping[str, str]
    tool: Tool
    cooldown_s: float
    expected_s: float
    shares: Mapping[str, tuple[Share, ...]]
    network: Optional[Network] = None
    placement: Placement = NOWHERE

    @property
    def tool_cpus(self) -> int:
        """Return how many CPUs the load tool can use at once."""
        return min(self.tool.cpus, len(self.tool.limits.cpus or ()) or self.tool.cpus)

    @property
    def environments(self) -> tuple[Environment, ...]:
        """Return those of the server, the services and the loads."""
        others = (each.env for each in self.services)
        return (self.server.env, *others, *(load.env for load in self.loads))

    @property
    def measured(self) -> int:
        """The number of measured loads."""
        return sum(load.kind == "measure" for load in self.loads)

    def cpus_on(self, label: str, *, with_tool: bool) -> Optional[frozenset[int]]:
        """Return the CPUs of all processes on this host, and the siblings that none of them uses.

        None if a process has no limit.
        """
        programs: tuple[Union[Server, Service], ...] = (self.server, *self.services)
        limits = [program.limits for program in programs if program.on == label]
        if with_tool:
            limits.append(self.tool.limits)
        held = [limit.cpus for limit in limits if limit.cpus is not None]
        if not held or len(held) < len(limits):
            return None
        return frozenset(cpu for cpus in held for cpu in cpus) | {*self.placement.siblings}

    def program(self, process: str) -> Optional[Program]:
        """Return the program of a process; None if the trial has no such process."""
        if process == SERVER:
            return self.server
        for number, step in enumerate(self.prepare):
            if process == get_prepare_name(number):
                return step
        return next(
            (service for service in self.services if process in service.process_names), None
        )


class Tls(NamedTuple):
    """PEM texts; `cert` and `key` None: this host runs no server."""

    ca: str
    cert: Optional[str]
    key: Optional[str]


class Host(NamedTuple):
    """`port`: where a follower listens for its lead; None = unknown, or it is the lead."""

    address: str
    port: Optional[int]


class QuietRule(NamedTuple):
    """A trial waits while others use more than `busy_share` of a host's CPUs.

    All trials of a round together wait for at most `wait_s`.
    """

    busy_share: float
    wait_s: float


class DiskRule(NamedTuple):
    """Files that were unused for `keep_days` are removed, and more down to `limit_bytes`."""

    limit_bytes: int
    keep_days: float


class Plan(NamedTuple):
    """`run_as`: the user that measured code runs as on this host; None = the agent's login.

    `machine_lock`: no other job may use the machine at the same time. `env`: the variables of all
    measured processes on this host, unless the plan has others for them.
    `secrets`: those of all hosts. They are not in plan.json.
    """

    job: str
    step: str
    silence_s: float
    me: str
    lead: str
    secret: Optional[str]
    hosts: Mapping[str, Host]
    tuning: Mapping[str, str]
    run_as: Optional[str]
    tls: Optional[Tls]
    quiet: QuietRule
    disk: DiskRule
    builds: tuple[Build, ...]
    trials: tuple[Trial, ...]
    machine_lock: bool = False
    env: Mapping[str, str] = {}
    secrets: SecretValues = NO_SECRETS

    @property
    def secret_names(self) -> frozenset[str]:
        """Return the secrets of the processes of all hosts: any host may get to print them."""
        builds = [build.env for build in self.builds]
        trials = [env for trial in self.trials for env in trial.environments]
        return frozenset(
            value.name
            for env in (*builds, *trials)
            for value in env.values()
            if isinstance(value, SecretName)
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do: no builds, trials, other hosts or tuning."""
        return not (self.builds or self.trials or self.tuning) and len(self.hosts) == 1

    @property
    def is_lead(self) -> bool:
        return self.me == self.lead

    @property
    def followers(self) -> tuple[str, ...]:
        return tuple(label for label in self.hosts if label != self.lead)

    def address(self, label: str) -> str:
        """Return the address on which the processes of a host listen, reachable from all hosts."""
        return self.hosts[label].address if len(self.hosts) > 1 else LOOPBACK

    def trial(self, name: str) -> Optional[Trial]:
        return next((trial for trial in self.trials if trial.id == name), None)
