"""From a case of a definition to what the load tool is asked to do."""

from collections.abc import Mapping

from orchestrator.benchmarks.fields import refuse
from orchestrator.benchmarks.matrix import expand, load_of
from orchestrator.benchmarks.spec import Scalar, Spec
from orchestrator.benchmarks.words import words_in, words_of
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.registry import TOOLS

#: Starting, asking for readiness, stopping and collecting: what a trial costs beside its load.
TRIAL_OVERHEAD_S = 1.0
#: A guess for loads that count requests, until the case has been measured: a slow server.
ASSUMED_RATE = 1_000.0
#: What the load tool has open beside its connections, rounded up.
OTHER_FILES = 32


def load_spec_of(spec: Spec, parameters: Mapping[str, Scalar]) -> LoadSpec:
    """The tool-neutral load of one case; InvalidRequestError where the tool cannot do it."""
    load = load_of(spec, parameters)
    result = LoadSpec(
        scheme="http",
        protocol="h1",
        path=load.path,
        method=load.method,
        headers=tuple(load.headers.items()),
        body=load.body,
        model="closed" if load.rate is None else "open",
        rate=None if load.rate is None else float(load.rate),
        connections=int(load.connections),
        duration_s=None if load.duration_s is None else float(load.duration_s),
        requests=None if load.requests is None else int(load.requests),
        warmup_s=load.warmup_s,
        request_timeout_s=load.request_timeout_s,
        keepalive=load.keepalive,
    )
    for field, problem in TOOLS[load.tool].problems(result):
        raise InvalidRequestError(f"load.{field}: {problem}", field=f"load.{field}")
    return result


def check_loads(spec: Spec) -> None:
    """InvalidRequestError for the first case whose load its tool cannot put."""
    for case in expand(spec):
        load = load_spec_of(spec, case.parameters)
        _check_words(spec, load)
        _check_files(spec, load)


def _check_words(spec: Spec, load: LoadSpec) -> None:
    """A word of a service would reach the tool with something else in its place."""
    texts = [("path", load.path), ("body", load.body or "")]
    texts += [(f"headers.{name}", value) for name, value in load.headers]
    taken = set(words_of(spec.services))
    for where, text in texts:
        if found := words_in(text) & taken:
            problem = f"{{{min(found)}}} would be replaced on the host: write it another way"
            raise refuse(f"load.{where}", problem)


def _check_files(spec: Spec, load: LoadSpec) -> None:
    files = spec.limits.generator.open_files
    if files is not None and files < load.connections + OTHER_FILES:
        raise refuse(
            "limits.generator.open_files",
            f"{files} are too few for {load.connections} connections; the load tool needs "
            f"at least {load.connections + OTHER_FILES}, or take fewer connections",
        )


def expected_trial_s(spec: Spec, load: LoadSpec) -> float:
    """About how long one trial of this load takes, in seconds, start to cool-down."""
    if load.duration_s is not None:
        loading = load.duration_s
    else:
        loading = (load.requests or 0) / (load.rate or ASSUMED_RATE)
    return load.warmup_s + loading + spec.cooldown_s + TRIAL_OVERHEAD_S
