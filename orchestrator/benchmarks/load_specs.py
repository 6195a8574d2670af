"""Convert a case of a definition to loads for the load tool, and find the host roles they need."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from string import ascii_lowercase

from orchestrator.benchmarks.auxiliary import Role
from orchestrator.benchmarks.capacity_rates import list_share_metrics
from orchestrator.benchmarks.fields import refuse, select_texts
from orchestrator.benchmarks.load import Expect, Load, Range, Search, Step
from orchestrator.benchmarks.local_packages import find_shared_sources
from orchestrator.benchmarks.matrix import (
    CaseSpec,
    build_resolver,
    expand,
    fill,
    find_unsupported_reason,
    resolve_cells,
    resolve_load,
    resolve_network,
)
from orchestrator.benchmarks.placeholders import (
    find_placeholders,
    list_repository_placeholders,
    list_service_placeholders,
)
from orchestrator.benchmarks.spec import Scalar, Spec, check_start
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.ids import hash_value
from orchestrator.loadtools.metrics import CAPACITY_METRIC, PRIMARY, PRIMARY_OF_CLIENT
from orchestrator.loadtools.model import GrpcCall, LoadSpec, Model, Problem
from orchestrator.loadtools.registry import TOOLS, Adapter

#: Overhead of a trial in addition to its load: start, readiness, stop and collection.
TRIAL_OVERHEAD_S = 1.0
#: A guess for loads that count requests, until the case has been measured: a slow server.
ASSUMED_RATE = 1_000.0
#: Files that the load tool opens in addition to its connections, rounded up.
OTHER_FILES = 32
#: The status of a successful gRPC call.
GRPC_OK = 0
#: The usual number of probes of a search, including its confirmations.
USUAL_PROBES = 30


def build_load_specs(spec: Spec, parameters: Mapping[str, Scalar]) -> tuple[LoadSpec, ...]:
    """Return the tool-neutral loads of one case: one, or one per step of a stepped load.

    Raise InvalidRequestError with the field if the tool cannot create the load.
    """
    load = resolve_load(spec, parameters)
    whole = replace(
        _build_load_spec(load, parameters),
        client_measured=spec.measured == "client",
        network=resolve_network(spec, parameters),
    )
    steps = tuple(
        _build_step_spec(whole, step, first=not place)
        for place, step in enumerate(load.steps or ())
    )
    specs = steps or (whole,)
    for each in specs:
        for field, problem in [*TOOLS[load.tool].problems(each), *_search_problems(load)]:
            raise InvalidRequestError(f"load.{field}: {problem}", field=f"load.{field}")
    return specs


def count_measured_loads(spec: Spec, parameters: Mapping[str, Scalar]) -> int:
    """Return the maximum number of measured loads in a trial: its steps, its probes, or 1."""
    search = resolve_load(spec, parameters).search
    return search.max_probes if search else len(build_load_specs(spec, parameters))


def get_tool(spec: Spec, parameters: Mapping[str, Scalar]) -> Adapter:
    """Return the load tool of one case."""
    return TOOLS[resolve_load(spec, parameters).tool]


def list_tools(spec: Spec) -> tuple[str, ...]:
    """Return the load tools of all cases, by name."""
    return tuple(dict.fromkeys(get_tool(spec, case.parameters).name for case in expand(spec)))


def map_primary_metrics(spec: Spec) -> dict[str, frozenset[Model]]:
    """Return the metrics that decide the verdict of some case, with the loops of these cases."""
    loops: dict[str, set[Model]] = {}
    for resolved in list_configurations(spec):
        for key in list_case_metrics(resolved):
            loops.setdefault(key, set()).add(get_planned_loop(resolved.load))
    return {key: frozenset(each) for key, each in loops.items()}


def list_case_metrics(resolved: Spec) -> tuple[str, ...]:
    """Return the metrics that decide the verdict of a case with this definition (see resolve).

    The capacity of a search is the first one: it is shown, and never decides a comparison.
    """
    if resolved.measured == "client":
        return PRIMARY_OF_CLIENT
    if resolved.load.search is not None:
        return (CAPACITY_METRIC, *list_share_metrics(resolved.load.search))
    return PRIMARY[get_planned_loop(resolved.load)]


def get_planned_loop(load: Load) -> Model:
    """Return open if any part of the load has a rate; a search always has one."""
    rates = (load.rate, *(step.rate for step in load.steps or ()))
    rated = load.search is not None or any(rate is not None for rate in rates)
    return "open" if rated else "closed"


def list_configurations(spec: Spec) -> list[Spec]:
    """Return the different definitions of all cases (see resolve_cells)."""
    return resolve_cells(spec, [case.parameters for case in expand(spec)] if spec.options else ())


def check_loads(spec: Spec) -> None:
    """Raise InvalidRequestError for the first case whose load its tool cannot create."""
    shape = build_resolver(spec)
    for case in expand(spec):
        resolved = shape(case.parameters)
        if find_unsupported_reason(spec, case.parameters):
            continue
        _check_start(resolved, case)
        for load in build_load_specs(resolved, case.parameters):
            _check_words(resolved, load)
            _check_files(resolved, load)


def estimate_trials_s(spec: Spec, cases: Iterable[CaseSpec]) -> list[float]:
    """Return `estimate_trial_s` of each of these cases."""
    shape = build_resolver(spec)
    return [
        0.0
        if find_unsupported_reason(spec, case.parameters)
        else estimate_trial_s(shape(case.parameters), case.parameters)
        for case in cases
    ]


def estimate_trial_s(spec: Spec, parameters: Mapping[str, Scalar]) -> float:
    """Estimate how long one trial of this case takes in seconds, from start to cool-down.

    It is 0 for a case that the definition marks as unsupported.
    """
    if find_unsupported_reason(spec, parameters):
        return 0.0
    loads = build_load_specs(spec, parameters)
    loading = sum(each.primer_s + each.warmup_s + _estimate_loading_s(each) for each in loads)
    probes = USUAL_PROBES if loads[0].searching else 1
    per_probe = loading + TRIAL_OVERHEAD_S + sum_step_limits(spec)
    return probes * per_probe + get_network_setup_s(loads[0]) + spec.cooldown_s


def get_network_setup_s(load: LoadSpec) -> float:
    """Return the seconds in which a trial sets up and measures its emulated network, if any."""
    return 0.0 if load.network is None else load.network.setup_s


def sum_step_limits(spec: Spec) -> float:
    """Return the time limits of the prepare steps of each trial together, in seconds."""
    return sum(step.timeout_s for step in spec.prepare if step.each == "trial")


def has_prepare_steps(spec: Spec) -> bool:
    """Return whether some case has a prepare step."""
    changed = (option.prepare for values in spec.options.values() for option in values.values())
    return bool(spec.prepare) or any(changed)


def estimate_prepare_s(spec: Spec, cases: Iterable[CaseSpec], *, commits: int) -> float:
    """Return the time limits of the prepare steps that a job with these cases runs only once.

    They are those of the job, and for each of its commits those of the commit. Steps with the same
    command run once for all cases.
    """
    shape = build_resolver(spec)
    limits: dict[str, float] = {}
    for case in cases:
        if find_unsupported_reason(spec, case.parameters):
            continue
        for step in shape(case.parameters).prepare:
            if step.each != "trial":
                folder = step.working_dir or spec.subject.working_dir or ""
                texts = (folder, *step.run, *select_texts(step.env).values())
                words = [fill(text, case.parameters) for text in texts]
                factor = commits if step.each == "commit" else 1
                limits[hash_value([step.each, words])] = step.timeout_s * factor
    return sum(limits.values())


def _estimate_loading_s(load: LoadSpec) -> float:
    if load.duration_s is not None:
        return load.duration_s + load.idle_s
    return (load.requests or 0) / (load.rate or ASSUMED_RATE) + load.idle_s


def _build_load_spec(load: Load, parameters: Mapping[str, Scalar]) -> LoadSpec:
    rate, searching = _resolve_rate(load)
    expect = load.expect or Expect()
    return LoadSpec(
        protocol=load.protocol,  # type: ignore[arg-type]  # a reference no more
        tls=bool(load.tls),
        path=load.path,
        random_path=load.random_path,
        method=load.method,
        headers=tuple(load.headers.items()),
        body=_build_body(load),
        compression=tuple(load.compression) if load.compression else None,
        grpc=None if load.grpc is None else _build_grpc(load),
        command=tuple(load.command or ()),
        parameters=dict(parameters),
        model="closed" if rate is None else "open",
        rate=rate,
        searching=searching,
        connections=int(load.connections),
        streams=int(load.streams),
        duration_s=_resolve_seconds(load),
        requests=None if load.requests is None else int(load.requests),
        warmup_s=load.warmup_s,
        primer_s=load.primer_s,
        request_timeout_s=load.request_timeout_s,
        connect_timeout_s=load.connect_timeout_s,
        quic_idle_timeout_s=load.quic_idle_timeout_s,
        keepalive=bool(load.keepalive),
        response_bytes=_resolve_response_bytes(load.response_bytes),
        good_statuses=(GRPC_OK,) if load.protocol == "grpc" else expect.statuses,
        volatile=None if expect.volatile is None else tuple(expect.volatile),
    )


def _build_body(load: Load) -> str | None:
    """Return the body as written, or a generated one that repeats the alphabet."""
    if load.body_bytes is None:
        return load.body
    size = int(load.body_bytes)
    return (ascii_lowercase * (size // len(ascii_lowercase) + 1))[:size]


def _check_start(resolved: Spec, case: CaseSpec) -> None:
    try:
        check_start(resolved)
        if faults := list(find_shared_sources(resolved)):
            raise InvalidRequestError.from_faults(faults)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"for {case.label}: {error}", field=error.field) from error


def _resolve_rate(load: Load) -> tuple[float | None, bool]:
    """Return requests per second, and whether it is the maximum of a search."""
    if load.search is not None:
        return load.search.high, True
    return (None if load.rate is None else float(load.rate)), False


def _resolve_seconds(load: Load) -> float | None:
    if load.search is not None:
        return load.search.probe_s
    return None if load.duration_s is None else float(load.duration_s)


def _build_grpc(load: Load) -> GrpcCall:
    assert load.grpc is not None
    return GrpcCall(
        method=load.grpc.call,
        proto=load.grpc.proto,
        data=load.grpc.data,
        import_paths=tuple(load.grpc.import_paths),
    )


def _resolve_response_bytes(expected: int | Range | None) -> tuple[int, int] | None:
    if isinstance(expected, Range):
        return expected.min, expected.max
    return None if expected is None else (expected, expected)


def _build_step_spec(whole: LoadSpec, step: Step, *, first: bool) -> LoadSpec:
    """Apply a step to the whole load; only the first step has its full warm-up."""
    rate = whole.rate if step.rate is None else float(step.rate)
    ends = step.duration_s is not None or step.requests is not None
    return replace(
        whole,
        rate=rate,
        model="closed" if rate is None else "open",
        connections=step.connections or whole.connections,
        streams=step.streams or whole.streams,
        duration_s=step.duration_s if ends else whole.duration_s,
        requests=step.requests if ends else whole.requests,
        warmup_s=whole.warmup_s if first else step.warmup_s,
        primer_s=whole.primer_s if first else 0.0,
    )


def _search_problems(load: Load) -> Iterator[Problem]:
    search: Search | None = load.search
    if search is not None and not TOOLS[load.tool].sheet.open_loop:
        yield "search", f"{load.tool} cannot send at a fixed rate without waiting for responses"


def _check_words(spec: Spec, load: LoadSpec) -> None:
    """Reject placeholders of a service or repository: the agent would replace them first."""
    texts = [
        ("path", load.path),
        ("body", load.body or ""),
        ("random_path", load.random_path or ""),
    ]
    texts += [(f"headers.{name}", value) for name, value in load.headers]
    taken = {
        *list_service_placeholders(spec.services),
        *list_repository_placeholders(spec.repositories),
    }
    for where, text in texts:
        if conflicts := find_placeholders(text) & taken:
            problem = f"{{{min(conflicts)}}} would be replaced on the host: write it another way"
            raise refuse(f"load.{where}", problem)


def _check_files(spec: Spec, load: LoadSpec) -> None:
    files = spec.limits.generator.open_files
    if files is not None and files < load.connections + OTHER_FILES:
        raise refuse(
            "limits.generator.open_files",
            f"{files} are too few for {load.connections} connections; the load tool needs "
            f"at least {load.connections + OTHER_FILES}, or take fewer connections",
        )


def list_roles(spec: Spec) -> frozenset[Role]:
    """Return the roles that a run of this definition needs hosts for."""
    return frozenset().union(*(shape.roles for shape in list_configurations(spec)))


def find_unbound_services(spec: Spec) -> tuple[str, ...]:
    """Return the subject and the services that lack `{bind}` in some case (see Spec.unbound)."""
    return tuple(
        dict.fromkeys(name for shape in list_configurations(spec) for name in shape.unbound)
    )
