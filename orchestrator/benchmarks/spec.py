"""The model of a benchmark definition: strict, and without Django.

A definition is YAML. `parse` turns it into a `Spec` or raises InvalidRequestError, whose message
contains the path into the file and the expectation, such as `load.duration_s: expected a number
greater than 0, got 'soon'`.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from agents.hostagent.protocol import WHOLE_COMMIT
from orchestrator.benchmarks.auxiliary import MAX_SERVICES, Process, Role, Service
from orchestrator.benchmarks.definition_files import Files
from orchestrator.benchmarks.faults import describe_yaml_error, find_faults
from orchestrator.benchmarks.fields import (
    Command,
    Environment,
    HttpStatus,
    Name,
    Scalar,
    Strict,
    TreePath,
    check_folder,
    format_axis_value,
    refuse,
    select_texts,
)
from orchestrator.benchmarks.limits import RoleLimits
from orchestrator.benchmarks.load import REFERENCES, Check, Load
from orchestrator.benchmarks.network import Network
from orchestrator.benchmarks.options import Options, Requires
from orchestrator.benchmarks.other_repositories import MAX_REPOSITORIES, OtherRepository
from orchestrator.benchmarks.placeholders import (
    AGENT_WORDS,
    BUILD_WORDS,
    PROCESS_WORDS,
    Stage,
    find_placeholder_problem,
    find_placeholders,
    list_prepare_words,
    list_repository_placeholders,
    list_service_placeholders,
)
from orchestrator.benchmarks.prepare_steps import MAX_PREPARE_STEPS, PrepareStep
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.yaml_text import parse_yaml
from orchestrator.loadtools.metrics import find_metric
from orchestrator.stats.power import MOST_BLOCKS

MAX_SOURCE_BYTES = 256 * 1024
#: The maximum number of rounds of a run.
MAX_ROUNDS = MOST_BLOCKS
#: The most builds of a commit in a run. More would have fewer than two rounds each in most runs.
MAX_BUILDS = 10


class Ready(Strict):
    """The response that shows that the server is ready; it is requested before and after each load.

    Without a path, a connection is enough (with TLS, a handshake).
    """

    path: Annotated[str, Field(pattern=r"^/")] | None = "/"
    status: HttpStatus = 200
    body: Annotated[str, Field(max_length=65536)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30


class Install(Strict):
    """Dependencies of the subject outside its source, in a separate folder: `{installed}`.

    The folder stays on the host as long as the steps, the contents of `files` (of the commit) and
    the programs of the host stay the same. The steps see only `files` of the commit. `files` names
    files and folders, or `.` for the whole commit.
    """

    steps: Annotated[list[Command], Field(min_length=1, max_length=20)]
    files: Annotated[list[TreePath], Field(max_length=50)] = []
    timeout_s: Annotated[float, Field(gt=0, le=7200)] = 1800

    @field_validator("files")
    @classmethod
    def _inside(cls, files: list[str]) -> list[str]:
        for file in files:
            if file != WHOLE_COMMIT and {"", ".", ".."} & set(file.split("/")):
                raise ValueError(
                    f"expected plain paths of files and folders of the commit, or '.', got {file!r}"
                )
        return files


class Subject(Process):
    """The server or program under test: how to install, build and start it.

    Without `start`, each value of some axis has to define one (see Option).
    """

    start: Command | None = None  # type: ignore[assignment]  # a plain Process requires it
    working_dir: TreePath | None = None
    install: Install | None = None
    build: Annotated[list[Command], Field(max_length=20)] = []
    build_timeout_s: Annotated[float, Field(gt=0, le=7200)] = 900
    ready: Ready = Ready()

    @field_validator("working_dir")
    @classmethod
    def _is_plain(cls, path: str | None) -> str | None:
        return check_folder(path)


class Spec(Strict):
    """One version of a benchmark definition. The order of `services` is the order of their start.

    `known`: true values of metrics if the server is built to have them: a load tool's difference
    from them is its error. `measured`: the side to measure; the other is constant. `baseline`: the
    values of axes that are the 100 % of reports. `contest`: the axis whose values are measured in
    common blocks and compared in pairs. `repositories`: commits of other projects, which the
    subject and the services may use.
    """

    version: Literal[1]
    title: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=5000)] = ""
    subject: Subject
    files: Files = {}
    services: Annotated[dict[Name, Service], Field(max_length=MAX_SERVICES)] = {}
    repositories: Annotated[dict[Name, OtherRepository], Field(max_length=MAX_REPOSITORIES)] = {}
    prepare: Annotated[list[PrepareStep], Field(max_length=MAX_PREPARE_STEPS)] = []
    load: Load
    network: Network | None = None
    checks: Annotated[list[Check], Field(max_length=50)] = []
    known: dict[str, Annotated[float, Field(gt=0)]] = {}
    measured: Literal["server", "client"] = "server"
    requires: Requires = {}
    limits: RoleLimits = RoleLimits()
    matrix: dict[Name, Annotated[list[Scalar], Field(min_length=1, max_length=100)]] = {}
    options: Options = {}
    include: Annotated[list[dict[Name, Scalar]], Field(max_length=1000)] = []
    exclude: Annotated[list[dict[Name, Scalar | list[Scalar]]], Field(max_length=200)] = []
    baseline: dict[Name, Scalar] = {}
    contest: Name | None = None
    rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] = 7
    builds: Annotated[int, Field(ge=1, le=MAX_BUILDS)] = 1
    cooldown_s: Annotated[float, Field(ge=0, le=600)] = 1
    pin_cpus: bool = True
    too_few_cores: Literal["share", "unsupported"] = "share"

    @property
    def has_build_steps(self) -> bool:
        """Return whether commits are built, in all cases or in those of an option."""
        options = (option for values in self.options.values() for option in values.values())
        return bool(self.subject.build) or any(each.subject.get("build") for each in options)

    @property
    def roles(self) -> frozenset[Role]:
        """Return the roles that a run of this definition needs hosts for."""
        return frozenset({"target", "generator", *(one.role for one in self.services.values())})

    @property
    def unbound(self) -> tuple[str, ...]:
        """Return the subject and the services whose commands lack `{bind}`.

        Only they know whether they can be reached from another host.
        """
        processes: dict[str, Process] = {**self.services, "subject": self.subject}
        return tuple(name for name, each in processes.items() if not each.uses("bind"))

    @field_validator("services", mode="before")
    @classmethod
    def _from_stored(cls, data: object) -> object:
        """Convert the stored list: PostgreSQL does not keep the order of keys in a JSON object."""
        if isinstance(data, list) and all(isinstance(one, dict) and "name" in one for one in data):
            return {one["name"]: {k: v for k, v in one.items() if k != "name"} for one in data}
        return data

    @model_serializer(mode="wrap")
    def _canonical(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out unused fields, so that older definitions keep their digests."""
        data = serialize(self)
        data["services"] = [{"name": name, **each} for name, each in data["services"].items()]
        unused: dict[str, Any] = {
            "files": {},
            "services": [],
            "repositories": {},
            "prepare": [],
            "limits": RoleLimits().model_dump(),
            "network": None,
            "checks": [],
            "known": {},
            "measured": "server",
            "builds": 1,
            "too_few_cores": "share",
            "requires": {},
            "options": {},
            "include": [],
            "baseline": {},
            "contest": None,
        }
        for name, value in unused.items():
            if data[name] == value:
                del data[name]
        for name in ("install", "working_dir"):
            if data["subject"].get(name) is None:
                data["subject"].pop(name, None)
        return data

    @model_validator(mode="after")
    def _words_are_known(self) -> "Spec":
        later = (
            *AGENT_WORDS,
            *list_service_placeholders(self.services),
            *list_repository_placeholders(self.repositories),
        )
        if problem := find_placeholder_problem(
            _iterate_stages(self), axes=self.matrix, later=later
        ):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _axes_are_known(self) -> "Spec":
        cells: list[tuple[str, Mapping[str, object]]] = [
            *((f"exclude[{place}]", cell) for place, cell in enumerate(self.exclude)),
            *((f"include[{place}]", cell) for place, cell in enumerate(self.include)),
            ("baseline", self.baseline),
            ("options", self.options),
        ]
        for where, cell in cells:
            if unknown := set(cell) - set(self.matrix):
                raise ValueError(f"{where}: {min(unknown)} is not an axis of the matrix")
        for place, added in enumerate(self.include):
            if missing := set(self.matrix) - set(added):
                raise ValueError(f"include[{place}]: give a value of the axis {min(missing)} too")
        return self

    @model_validator(mode="after")
    def _values_are_known(self) -> "Spec":
        for axis, options in self.options.items():
            shown = [format_axis_value(value) for value in self.list_values(axis)]
            for value, option in options.items():
                if value not in shown:
                    raise ValueError(f"options.{axis}.{value}: the axis has no such value")
                new = option.replacement
                if new is not None and format_axis_value(new) not in shown:
                    raise ValueError(
                        f"options.{axis}.{value}.replacement: the axis has no value {new!r}"
                    )
        for axis, one in self.baseline.items():
            if one not in self.list_values(axis):
                raise ValueError(f"baseline.{axis}: the axis has no value {one!r}")
        return self

    def list_values(self, axis: str) -> list[Scalar]:
        """Return all values of an axis, including those of additional cells."""
        return list(dict.fromkeys([*self.matrix[axis], *(cell[axis] for cell in self.include)]))

    @model_validator(mode="after")
    def _known_metrics(self) -> "Spec":
        for key in self.known:
            if find_metric(key) is None:
                raise ValueError(f"known.{key}: there is no such metric")
        return self

    @model_validator(mode="after")
    def _pinning_is_one_will(self) -> "Spec":
        for role in ("target", "generator"):
            if getattr(self.limits, role).cpus is not None and not self.pin_cpus:
                raise ValueError(
                    f"limits.{role}.cpus: pin_cpus is false, so no CPUs are set aside; "
                    "leave one of the two out"
                )
        if self.too_few_cores == "unsupported" and not self.pin_cpus:
            raise ValueError(
                "too_few_cores: pin_cpus is false, so no cores are set aside; "
                "leave one of the two out"
            )
        return self

    @model_validator(mode="after")
    def _ports_differ(self) -> "Spec":
        taken = {("target", self.subject.port): "subject"} if self.subject.port else {}
        for name, service in self.services.items():
            if service.port is None:
                continue
            other = taken.setdefault((service.role, service.port), f"services.{name}")
            if other != f"services.{name}":
                raise ValueError(
                    f"services.{name}.port: {service.port} is the port of {other} on the same host"
                )
        return self


def parse(source: str) -> Spec:
    """Return the specification in a YAML text; InvalidRequestError with the path of a fault."""
    if len(source.encode()) > MAX_SOURCE_BYTES:
        raise InvalidRequestError(f"a definition has at most {MAX_SOURCE_BYTES // 1024} KiB")
    try:
        data = parse_yaml(source)
    except yaml.YAMLError as error:
        raise InvalidRequestError(f"not valid YAML: {describe_yaml_error(error)}") from error
    except (RecursionError, ValueError) as error:
        raise InvalidRequestError(f"not a usable YAML document: {error}") from error
    if not isinstance(data, dict):
        raise InvalidRequestError("expected a mapping with version, title, subject and load")
    if isinstance(data.get("services"), list):
        raise refuse("services", "expected a mapping from names to services, got a list")
    _check_axis_names(data)
    spec = from_data(data)
    if faults := [
        *_find_equal_values(spec), *_find_unknown_words(spec), *_find_useless_builds(spec),
        *_find_useless_contest(spec),
    ]:  # fmt: skip
        raise InvalidRequestError.from_faults(faults)
    if not spec.options:
        check_start(spec)
    return spec


def _find_equal_values(spec: Spec) -> Iterator[tuple[str, str]]:
    """Two cases with the same label cannot be distinguished. Older definitions may have them."""
    for axis, values in spec.matrix.items():
        places: dict[str, int] = {}
        for place, value in enumerate(values):
            # 4 and 4.0 are one number.
            whole = isinstance(value, float) and value.is_integer()
            label = format_axis_value(int(value) if whole else value)
            first = places.setdefault(label, place)
            if first != place:
                yield f"matrix.{axis}[{place}]", f"{label} is also the value {axis}[{first}]"


def _find_unknown_words(spec: Spec) -> Iterator[tuple[str, str]]:
    """The path would be requested as written, with the braces."""
    for word in sorted(find_placeholders(spec.load.path) - {*spec.matrix, *AGENT_WORDS}):
        close = get_close_matches(word, spec.matrix, n=1)
        hint = f"; did you mean {{{close[0]}}}?" if close else ". Literal braces are %7B and %7D."
        yield "load.path", f"{{{word}}} is not an axis of the matrix{hint}"


def _find_useless_builds(spec: Spec) -> Iterator[tuple[str, str]]:
    """Without build steps, all builds of a commit would be equal."""
    if spec.builds > 1 and not spec.has_build_steps:
        yield "builds", "there are no build steps (subject.build), so all builds would be equal"


def _find_useless_contest(spec: Spec) -> Iterator[tuple[str, str]]:
    """A contest compares values of an axis, so there must be several."""
    if spec.contest is None:
        return
    if spec.contest not in spec.matrix:
        known = ", ".join(spec.matrix) or "none"
        yield "contest", f"{spec.contest} is not an axis of the matrix; there are: {known}"
    elif len(spec.list_values(spec.contest)) == 1:
        yield "contest", f"the axis {spec.contest} has a single value; add another one to compare"


def check_start(spec: Spec) -> None:
    """Raise InvalidRequestError if a definition, or one case of it, starts nothing.

    Also raise it if the server does not get its port, and for a placeholder of something that the
    definition lacks, such as `{installed}` without an installation.
    """
    if spec.subject.start is None:
        raise refuse("subject.start", "this field is missing")
    if spec.subject.port is None and not spec.subject.uses("port"):
        raise refuse(
            "subject.start",
            "the server does not get its port: use {port} in start or env, or give a fixed port",
        )
    missing = _list_missing(spec)
    for stage in _iterate_stages(spec) if missing else ():
        for where, text in stage.texts:
            for word in sorted(find_placeholders(text) & set(missing)):
                raise refuse(where, f"{{{word}}} requires {missing[word]}")


def _list_missing(spec: Spec) -> dict[str, str]:
    """Return placeholders without a value, each with the field that would give it one."""
    scopes = {step.each for step in spec.prepare}
    exists = {
        "installed": (spec.subject.install is not None, "subject.install"),
        "files": (bool(spec.files), "the field files"),
        "job_data": ("job" in scopes, "a step of prepare with each: job"),
        "commit_data": ("commit" in scopes, "a step of prepare with each: commit"),
    }
    return {word: field for word, (present, field) in exists.items() if not present}


def _list_names(data: dict[str, object], field: str) -> list[str]:
    value = data.get(field)
    return [str(name) for name in value] if isinstance(value, dict) else []


def _check_axis_names(data: dict[str, object]) -> None:
    """Check names in new definitions only: the list of reserved names grows with Pitwall."""
    services, repositories = _list_names(data, "services"), _list_names(data, "repositories")
    for axis in _list_names(data, "matrix"):
        owner = axis.rpartition("_")[0]
        if axis in AGENT_WORDS:
            raise refuse(f"matrix.{axis}", "this name is taken by the agent; rename the axis")
        if axis in list_service_placeholders(services):
            problem = f"this name is taken by the service {owner}; rename one of them"
            raise refuse(f"matrix.{axis}", problem)
        if axis in list_repository_placeholders(repositories):
            problem = f"this name is taken by the repository {owner}; rename one of them"
            raise refuse(f"matrix.{axis}", problem)


def from_data(data: dict[str, object]) -> Spec:
    """Return the specification in `data` (stored, or parsed from YAML); errors as for `parse`."""
    try:
        return Spec.model_validate(data)
    except ValidationError as error:
        raise InvalidRequestError.from_faults(find_faults(error, data, Spec)) from error


def _iterate_stages(spec: Spec) -> Iterator[Stage]:
    """Yield every text of a definition with placeholders, in the order of their replacement."""
    install = spec.subject.install
    recipes = {"install.steps": install.steps if install else [], "build": spec.subject.build}
    texts = tuple(
        (f"subject.{name}[{place}][{i}]", text)
        for name, commands in recipes.items()
        for place, command in enumerate(commands)
        for i, text in enumerate(command)
    )
    trees = list_repository_placeholders(spec.repositories)
    yield Stage(texts=texts, words=(*BUILD_WORDS, *trees))
    started: list[str] = []
    for name, service in spec.services.items():
        words = (*PROCESS_WORDS, *trees, *list_service_placeholders(started))
        yield Stage(texts=_list_process_texts(f"services.{name}", service), words=words)
        started.append(name)
    for place, step in enumerate(spec.prepare):
        words = (*list_prepare_words(step.after, started), *trees)
        yield Stage(texts=_list_step_texts(f"prepare[{place}]", step), words=words)
    words = (*PROCESS_WORDS, *trees, *list_service_placeholders(started))
    yield Stage(texts=_list_process_texts("subject", spec.subject), words=words)
    command = [(f"load.command[{i}]", text) for i, text in enumerate(spec.load.command or ())]
    script = (*command, *_list_env_texts("load", spec.load.env))
    yield Stage(texts=script, words=(*PROCESS_WORDS, *trees, "ca"))
    load = {name: getattr(spec.load, name) for name in REFERENCES}
    given = [
        (f"load.{name}", text)
        for name, text in load.items()
        if isinstance(text, str) and text.startswith("{")
    ]
    given.append(("subject.working_dir", spec.subject.working_dir or ""))
    if spec.network is not None:
        given += [(f"network.{name}", text) for name, text in spec.network.texts.items()]
    given += [(f"repositories.{name}.ref", each.ref) for name, each in spec.repositories.items()]
    given += [
        (f"prepare[{place}].working_dir", step.working_dir or "")
        for place, step in enumerate(spec.prepare)
    ]
    yield Stage(texts=tuple(given), words=())


def _list_process_texts(path: str, process: Process) -> tuple[tuple[str, str], ...]:
    start = [(f"{path}.start[{i}]", text) for i, text in enumerate(process.start or ())]
    return (*start, *_list_env_texts(path, process.env))


def _list_env_texts(path: str, env: Environment) -> Iterator[tuple[str, str]]:
    return ((f"{path}.env.{key}", text) for key, text in select_texts(env).items())


def _list_step_texts(path: str, step: PrepareStep) -> tuple[tuple[str, str], ...]:
    run = [(f"{path}.run[{i}]", text) for i, text in enumerate(step.run)]
    return (*run, *_list_env_texts(path, step.env))
