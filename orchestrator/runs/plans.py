"""What a request for a run means and costs, before anything is queued."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

from orchestrator.accounts.members import Member
from orchestrator.benchmarks import selectors as benchmarks
from orchestrator.benchmarks.choice import choose
from orchestrator.benchmarks.expanded import expanded
from orchestrator.benchmarks.from_repository import definition_at
from orchestrator.benchmarks.matrix import CaseSpec, pairwise
from orchestrator.benchmarks.models import Benchmark, Commit, Definition
from orchestrator.benchmarks.refs import Refs
from orchestrator.benchmarks.resolved import why_unsupported
from orchestrator.benchmarks.roles import roles_of
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import HELD, HostState
from orchestrator.runs.baselines import baseline_of, is_rule
from orchestrator.runs.end_conditions import (
    blocks_of,
    budget_warning,
    check_budget,
    parse_until,
    resolve_rounds,
)
from orchestrator.runs.models import Priority, Until
from orchestrator.runs.order import split_cases
from orchestrator.runs.placements import Roles, roles_asked
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.stopping import BlocksLeft


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What somebody wants measured; refs are branches, tags or hashes.

    Without a baseline it is the first parent of the first contender: it is measured along with it,
    in the same blocks. It may be a rule (runs/baselines.py). A baseline without contenders is one
    commit measured alone, with nothing to compare it with. `cases` is an expression that chooses
    cases (benchmarks/choice.py; empty: all);
    `pairwise` takes fewer of them, in which each pair of values still occurs. `hosts` are
    placements of one host that plays every role; `placements` name a host for each role (see
    runs/placements.py). `until` says when a case needs no more rounds (models.Until); where that is
    not after all of them, `rounds` is how many there are at most. `budget_s`: machine seconds, of
    all hosts together, that the run may spend.
    """

    benchmark: str
    contenders: tuple[str, ...]
    baseline: str = ""
    cases: str = ""
    pairwise: bool = False
    hosts: tuple[str, ...] = ()
    placements: tuple[Mapping[str, str], ...] = ()
    rounds: int | None = None
    until: str = "rounds"
    budget_s: float | None = None
    project: str | None = None
    priority: str = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A request that can be carried out, and what it would take.

    `definition` is not stored yet where the repository has a new one. `cases` are the chosen ones
    of `cases_in_all`, in matrix order, and `trial_s` how long one trial of each is expected to
    take. `parts`: the cases (their places in that order) of each job of a placement. `job_s`: what
    one placement is busy for in all, at most; `trial_count` is as many at most.
    """

    definition: Definition
    spec: Spec
    commits: tuple[Commit, ...]
    placements: tuple[Roles, ...]
    rounds: int
    until: Until
    budget_s: float | None
    priority: int
    cases: tuple[CaseSpec, ...]
    cases_in_all: int
    trial_s: tuple[float, ...]
    parts: tuple[range, ...]
    trial_count: int
    job_s: float
    warnings: tuple[str, ...]

    @property
    def case_count(self) -> int:
        return len(self.cases)

    @property
    def alone(self) -> bool:
        """Whether there is one commit only, so that nothing is compared."""
        return len(self.commits) == 1

    @property
    def definition_is_new(self) -> bool:
        """Whether it is not stored yet: the repository has one that Pitwall has not seen."""
        return self.definition._state.adding

    @property
    def newest(self) -> Commit:
        """The commit whose definition it is, where that is kept in the repository."""
        return _newest(self.commits)

    @property
    def job_count(self) -> int:
        return len(self.parts) * len(self.placements)

    @property
    def machine_s(self) -> float:
        """Of all hosts together, at most."""
        seconds = self.job_s * self.host_count
        return seconds if self.budget_s is None else min(seconds, self.budget_s)

    @property
    def host_count(self) -> int:
        return sum(len(roles) for roles in self.placements)

    @property
    def blocks(self) -> BlocksLeft:
        """How many rounds a case takes at least, most likely, and at most."""
        return blocks_of(self.until, self.rounds)

    @property
    def looks(self) -> list[int]:
        """The numbers of rounds after which cases are looked at."""
        return [*(look for look in INTERIM_BLOCKS if look < self.rounds), self.rounds]

    @property
    def typical_s(self) -> float:
        """What one placement is busy for as a rule."""
        return self.seconds_of(self.blocks.typical)

    @property
    def trials_a_case(self) -> int:
        """On each placement, at most."""
        return len(self.commits) * self.rounds

    def seconds_of(self, blocks: int) -> float:
        """How long one placement is busy with so many rounds of each case, within the budget."""
        seconds = self.job_s * blocks / self.rounds
        return seconds if self.budget_s is None else min(seconds, self.budget_s / self.host_count)


def plan_run(*, member: Member, request: RunRequest) -> RunPlan:
    """What `request` means and costs; NotFoundError or InvalidRequestError where it cannot be."""
    benchmark = benchmarks.benchmark_for(member, request.benchmark, request.project)
    commits = _commits(benchmark, request)
    definition = definition_at(benchmark, _newest(commits))
    whole = expanded(definition)
    spec = whole.spec
    until = parse_until(request.until, alone=len(commits) == 1)
    rounds = resolve_rounds(until, request.rounds, spec.rounds)
    placements = roles_asked(member, request.hosts, request.placements, roles_of(spec))
    cases = _chosen(spec, whole.cases, request)
    times = tuple(whole.trial_s[case.key] for case in cases)
    trial_count = len(times) * len(commits) * rounds * len(placements)
    _check_trials(trial_count)
    case_s = [each * len(commits) * rounds for each in times]
    round_s = sum(times) * len(commits) * sum(len(roles) for roles in placements)
    check_budget(request.budget_s, round_s)
    return RunPlan(
        definition=definition,
        spec=spec,
        commits=commits,
        placements=placements,
        rounds=rounds,
        until=until,
        budget_s=request.budget_s,
        priority=_priority(request.priority),
        cases=tuple(cases),
        cases_in_all=len(whole.cases),
        trial_s=times,
        parts=_parts(case_s, until, rounds),
        trial_count=trial_count,
        job_s=sum(case_s),
        warnings=(
            *_few_rounds(rounds, request.budget_s, round_s, alone=len(commits) == 1),
            *_unusable_now(placements),
        ),
    )


def _check_trials(count: int) -> None:
    if count > settings.MAX_TRIALS:
        raise InvalidRequestError(
            f"that would be {count} trials; a run has at most {settings.MAX_TRIALS}: take "
            "fewer cases, commits, rounds or hosts, or start several runs"
        )


def _parts(case_s: Sequence[float], until: Until, rounds: int) -> tuple[range, ...]:
    """The jobs of a placement, sized by the rounds that cases take as a rule. `case_s`: seconds of
    all rounds of each case."""
    typical = blocks_of(until, rounds).typical
    return tuple(split_cases([each * typical / rounds for each in case_s]))


def _chosen(spec: Spec, every: Sequence[CaseSpec], request: RunRequest) -> list[CaseSpec]:
    """The cases that are asked for; those that cannot be measured stand for no pair of values."""
    cases = choose(spec, every, request.cases)
    if not request.pairwise:
        return cases
    lost = {case.key for case in cases if why_unsupported(spec, case.parameters)}
    kept = {
        case.key
        for group in (
            [case for case in cases if case.key not in lost],
            [case for case in cases if case.key in lost],
        )
        for case in pairwise(group)
    }
    return [case for case in cases if case.key in kept]


def _newest(commits: Sequence[Commit]) -> Commit:
    """The newest contender; its definition is that of all commits of the run."""
    return max(commits[1:] or commits, key=lambda commit: commit.committed_at)


def _priority(name: str) -> int:
    try:
        return Priority[name.upper()].value
    except KeyError as error:
        known = ", ".join(each.name.lower() for each in Priority)
        raise InvalidRequestError(
            f"expected one of {known}, got {name!r}", field="priority"
        ) from error


def _commits(benchmark: Benchmark, request: RunRequest) -> tuple[Commit, ...]:
    if not request.contenders and not request.baseline:
        raise InvalidRequestError(
            "name a contender, or a baseline alone to measure just that", field="contenders"
        )
    refs = Refs(benchmark.project)
    contenders = [_commit(refs, ref, "contenders") for ref in request.contenders]
    if is_rule(request.baseline):
        found = [baseline_of(benchmark, request.baseline, contenders, refs)]
    elif request.baseline:
        found = [_commit(refs, request.baseline, "baseline")]
    else:
        found = [_parent(refs, contenders[0])]
    for ref, commit in zip(request.contenders, contenders, strict=True):
        if commit in found:
            raise InvalidRequestError(
                f"{ref} is the commit {commit.short_sha}, which is in this run already",
                field="contenders",
            )
        found.append(commit)
    return tuple(found)


def _parent(refs: Refs, commit: Commit) -> Commit:
    if not commit.parents:
        raise InvalidRequestError(
            f"{commit.short_sha} is the first commit and has no parent; name a baseline",
            field="baseline",
        )
    return _commit(refs, commit.parents[0], "baseline")


def _commit(refs: Refs, ref: str, field: str) -> Commit:
    try:
        return refs.commit(ref)
    except InvalidRequestError as error:
        raise InvalidRequestError(str(error), field=field) from error


def _few_rounds(rounds: int, budget_s: float | None, round_s: float, *, alone: bool) -> list[str]:
    found = [budget_warning(budget_s, round_s, rounds, alone=alone)]
    if rounds < FEWEST_BLOCKS and not alone:
        found.append(
            f"with {rounds} rounds no verdict can be given; 5 is the least, 7 or more is better"
        )
    return [warning for warning in found if warning]


def _unusable_now(placements: tuple[Roles, ...]) -> list[str]:
    found = []
    named = [one.host for roles in placements for one in roles.values() if one.host is not None]
    for host in dict.fromkeys(named):
        if host.state == HostState.UNREACHABLE:
            found.append(f"{host.name} could not be reached the last time: {host.message}")
        elif host.state in HELD:
            state = host.get_state_display().lower()
            found.append(f"{host.name} is {state} ({host.message}): the run waits for its release")
    return found
