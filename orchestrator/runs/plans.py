"""Plans: the meaning, the end and the cost of a request for a run, before anything is queued."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings

from cli.pitwall.units import format_duration, format_items
from orchestrator.accounts.members import Member
from orchestrator.benchmarks import selectors as benchmarks
from orchestrator.benchmarks.choice import choose
from orchestrator.benchmarks.load_specs import estimate_prepare_s
from orchestrator.benchmarks.matrix import CaseSpec, find_unsupported_reason
from orchestrator.benchmarks.models import Benchmark, Commit, Definition
from orchestrator.benchmarks.project_secrets import check_secrets
from orchestrator.benchmarks.refs import Refs, is_rule, resolve_baseline
from orchestrator.benchmarks.selectors import StoredSpec, get_stored_spec
from orchestrator.benchmarks.services import load_definition_at
from orchestrator.benchmarks.spec import MAX_BUILDS, MAX_ROUNDS, Spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import HELD, HostState
from orchestrator.runs.contest_rules import (
    check_contests,
    resolve_places,
    select_pairwise_contests,
)
from orchestrator.runs.models import UNTIL_OF_CONTESTS, Priority, Until
from orchestrator.runs.pinned_repositories import PinnedCommit, resolve_pins
from orchestrator.runs.placements import Roles, parse_placements
from orchestrator.runs.trial_order import count_usable_builds, group_cases
from orchestrator.runs.wait_limits import (
    DEFAULT_WAIT_LIMIT_S,
    LEAST_WAIT_LIMIT_S,
    MOST_WAIT_LIMIT_S,
)
from orchestrator.stats.build_variance import ENOUGH_BUILDS
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.stopping import BlocksLeft, estimate_blocks_left

#: The indices of the cases of each job of a placement.
Parts = tuple[tuple[int, ...], ...]
#: The target duration of a job; other jobs get the host in between.
JOB_S = 600.0
#: The maximum rounds of a run that continues until decided: there is no analysis after these.
ROUNDS_AT_MOST = INTERIM_BLOCKS[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A request for a run; refs are branches, tags or hashes.

    The baseline defaults to the first parent of the first contender; it is measured in the same
    blocks. It may be a rule (benchmarks/refs.py). A baseline without contenders is measured alone
    and compared with nothing. `cases` is an expression that selects cases (benchmarks/choice.py;
    empty: all). `pairwise` reduces their number; each pair of values still occurs. `hosts` are
    placements with one host for all roles; `placements` name a host for each role
    (runs/placements.py). `until` is the end condition of a case (models.Until); unless it is
    `rounds`, `rounds` is the maximum. `places`: how many first places a run until `ranked` orders.
    `budget_s`: the machine seconds of all hosts together that
    the run may spend. `builds`: how often each commit is built, default as in the definition.
    `wait_for_quiet`: trials wait for a time while other processes use a host. `wait_limit_s`: the
    most seconds that its jobs wait in the queue (runs/wait_limits.py).
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
    places: int | None = None
    budget_s: float | None = None
    wait_for_quiet: bool = True
    wait_limit_s: float | None = None
    builds: int | None = None
    project: str | None = None
    priority: str = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A valid request and its cost.

    `definition` is not stored yet if it is new in the repository. `cases` are the selected ones of
    `cases_in_all`, in matrix order; `trial_s` is the expected duration of a trial of each. `parts`:
    the indices of the cases of each job of a placement; `prepare_s`: the time limits of the prepare
    steps that each of these jobs runs once. `job_s`: the maximum total time on one placement;
    `trial_count` is a maximum too. `pins`: the commits of other repositories.
    """

    definition: Definition
    spec: Spec
    commits: tuple[Commit, ...]
    placements: tuple[Roles, ...]
    rounds: int
    builds: int
    until: Until
    places: int | None
    budget_s: float | None
    priority: int
    cases: tuple[CaseSpec, ...]
    cases_in_all: int
    pins: tuple[PinnedCommit, ...]
    trial_s: tuple[float, ...]
    parts: Parts
    prepare_s: tuple[float, ...]
    trial_count: int
    job_s: float
    warnings: tuple[str, ...]

    @property
    def case_count(self) -> int:
        return len(self.cases)

    @property
    def alone(self) -> bool:
        """Return whether there is only one commit, so that nothing is compared."""
        return len(self.commits) == 1

    @property
    def definition_is_new(self) -> bool:
        """Return whether the definition is new in the repository and not stored yet."""
        return self.definition._state.adding

    @property
    def newest(self) -> Commit:
        """Return the commit whose definition is used, if it is stored in the repository."""
        return _find_newest_contender(self.commits)

    @property
    def job_count(self) -> int:
        return len(self.parts) * len(self.placements)

    @property
    def machine_s(self) -> float:
        """Return the maximum machine seconds of all hosts together."""
        seconds = self.job_s * self.host_count
        return seconds if self.budget_s is None else min(seconds, self.budget_s)

    @property
    def host_count(self) -> int:
        return sum(len(roles) for roles in self.placements)

    @property
    def blocks(self) -> BlocksLeft:
        """Return the minimum, typical and maximum rounds of a case."""
        return estimate_blocks(self.until, self.rounds)

    @property
    def interim_rounds(self) -> list[int]:
        """Return the numbers of rounds with an interim analysis."""
        return [*(blocks for blocks in INTERIM_BLOCKS if blocks < self.rounds), self.rounds]

    @property
    def typical_s(self) -> float:
        """Return the typical time on one placement."""
        return self.estimate_seconds(self.blocks.typical)

    @property
    def trials_a_case(self) -> int:
        """Return the maximum number of trials of a case on each placement."""
        return len(self.commits) * self.rounds

    def estimate_seconds(self, blocks: int) -> float:
        """Return the time on one placement for this many rounds of each case, within the budget."""
        once_s = sum(self.prepare_s)
        seconds = once_s + (self.job_s - once_s) * blocks / self.rounds
        return seconds if self.budget_s is None else min(seconds, self.budget_s / self.host_count)


def plan_run(*, member: Member, request: RunRequest) -> RunPlan:
    """Plan a request; NotFoundError or InvalidRequestError if it is not possible."""
    benchmark = benchmarks.load_benchmark(member, request.benchmark, request.project)
    commits = _resolve_commits(benchmark, request)
    definition = load_definition_at(benchmark, _find_newest_contender(commits))
    whole = get_stored_spec(definition)
    spec = whole.spec
    until = parse_until(request.until, alone=len(commits) == 1)
    places = request.places
    if until in UNTIL_OF_CONTESTS or places is not None:
        places = resolve_places(until, places)
    rounds = resolve_rounds(until, request.rounds, spec.rounds)
    builds = resolve_builds(spec, request.builds, rounds)
    placements = parse_placements(member, request.hosts, request.placements, whole.roles)
    cases = _select_cases(spec, whole.cases, request)
    if until in UNTIL_OF_CONTESTS:
        check_contests(spec, until, cases)
    parameters = [case.parameters for case in cases]
    if whole.has_secrets:
        check_secrets(benchmark.project, whole.list_secret_names(parameters), commits)
    pins = resolve_pins(member, spec, parameters) if spec.repositories else ()
    times = _plan_times(whole, cases, commits=len(commits), rounds=rounds, until=until)
    trial_count = len(cases) * len(commits) * rounds * len(placements)
    _check_trials(trial_count)
    round_s = times.round_s * sum(len(roles) for roles in placements)
    check_budget(request.budget_s, round_s)
    check_wait_limit(request.wait_limit_s)
    return RunPlan(
        definition=definition,
        spec=spec,
        commits=commits,
        placements=placements,
        rounds=rounds,
        builds=builds,
        until=until,
        places=places,
        budget_s=request.budget_s,
        priority=_parse_priority(request.priority),
        cases=tuple(cases),
        cases_in_all=len(whole.cases),
        pins=pins,
        trial_s=times.trial_s,
        parts=times.parts,
        prepare_s=times.prepare_s,
        trial_count=trial_count,
        job_s=times.job_s,
        warnings=(
            *_warn_of_few_rounds(rounds, request.budget_s, round_s, alone=len(commits) == 1),
            *_warn_of_few_builds(builds),
            *_warn_of_unusable_hosts(placements),
        ),
    )


class _Times(NamedTuple):
    """The jobs of a placement, as parts of the cases, and expected seconds.

    Of a trial of each case, of the prepare steps of each part, of a round, and of all jobs.
    """

    parts: Parts
    trial_s: tuple[float, ...]
    prepare_s: tuple[float, ...]
    round_s: float
    job_s: float


def check_wait_limit(seconds: float | None) -> float:
    """Return the limit in seconds, by default DEFAULT_WAIT_LIMIT_S."""
    if seconds is None:
        return DEFAULT_WAIT_LIMIT_S
    if not LEAST_WAIT_LIMIT_S <= seconds <= MOST_WAIT_LIMIT_S:
        raise InvalidRequestError(
            f"expected {LEAST_WAIT_LIMIT_S:g} to {MOST_WAIT_LIMIT_S:.0f} seconds (90 days), "
            f"got {seconds:g}",
            field="wait_limit_s",
        )
    return seconds


def _plan_times(
    whole: StoredSpec, cases: Sequence[CaseSpec], *, commits: int, rounds: int, until: Until
) -> _Times:
    trial_s = tuple(whole.trial_s[case.key] for case in cases)
    case_s = [each * commits * rounds for each in trial_s]
    parts = _split_jobs(group_cases(whole.spec, cases), case_s, until, rounds)
    prepare_s = tuple(
        estimate_prepare_s(whole.spec, [cases[at] for at in part], commits=commits)
        if whole.has_prepare_steps
        else 0.0
        for part in parts
    )
    return _Times(
        parts=parts,
        trial_s=trial_s,
        prepare_s=prepare_s,
        round_s=sum(trial_s) * commits + sum(prepare_s),
        job_s=sum(case_s) + sum(prepare_s),
    )


def _check_trials(count: int) -> None:
    if count > settings.MAX_TRIALS:
        raise InvalidRequestError(
            f"that would be {count} trials; a run has at most {settings.MAX_TRIALS}: take "
            "fewer cases, commits, rounds or hosts, or start several runs"
        )


def _split_jobs(
    contests: Sequence[Sequence[int]], case_s: Sequence[float], until: Until, rounds: int
) -> Parts:
    """Split the cases of a placement into jobs, sized by the typical number of rounds.

    The cases of a contest stay together. `case_s`: seconds of all rounds of each case.
    """
    share = estimate_blocks(until, rounds).typical / rounds
    seconds = [sum(case_s[case] for case in contest) * share for contest in contests]
    return tuple(
        tuple(sorted(case for at in part for case in contests[at])) for part in split_cases(seconds)
    )


def _select_cases(spec: Spec, every: Sequence[CaseSpec], request: RunRequest) -> list[CaseSpec]:
    """Return the selected cases; with `pairwise`, unsupported cases cover no pair of values."""
    cases = choose(spec, every, request.cases)
    if not request.pairwise:
        return cases
    lost = {case.key for case in cases if find_unsupported_reason(spec, case.parameters)}
    kept = {
        case.key
        for group in (
            [case for case in cases if case.key not in lost],
            [case for case in cases if case.key in lost],
        )
        for case in select_pairwise_contests(spec, group)
    }
    return [case for case in cases if case.key in kept]


def _find_newest_contender(commits: Sequence[Commit]) -> Commit:
    """Return the newest contender; its definition applies to all commits of the run."""
    return max(commits[1:] or commits, key=lambda commit: commit.committed_at)


def _parse_priority(name: str) -> int:
    try:
        return Priority[name.upper()].value
    except KeyError as error:
        known = ", ".join(each.name.lower() for each in Priority)
        raise InvalidRequestError(
            f"expected one of {known}, got {name!r}", field="priority"
        ) from error


def _resolve_commits(benchmark: Benchmark, request: RunRequest) -> tuple[Commit, ...]:
    if not request.contenders and not request.baseline:
        raise InvalidRequestError(
            "name a contender, or a baseline alone to measure just that", field="contenders"
        )
    refs = Refs(benchmark.project)
    contenders = [_resolve_commit(refs, ref, "contenders") for ref in request.contenders]
    if is_rule(request.baseline):
        commits = [resolve_baseline(benchmark, request.baseline, contenders, refs)]
    elif request.baseline:
        commits = [_resolve_commit(refs, request.baseline, "baseline")]
    else:
        commits = [_resolve_parent(refs, contenders[0])]
    for ref, commit in zip(request.contenders, contenders, strict=True):
        if commit in commits:
            raise InvalidRequestError(
                f"{ref} is the commit {commit.short_sha}, which is already in this run",
                field="contenders",
            )
        commits.append(commit)
    return tuple(commits)


def _resolve_parent(refs: Refs, commit: Commit) -> Commit:
    if not commit.parents:
        raise InvalidRequestError(
            f"{commit.short_sha} is the first commit and has no parent; name a baseline",
            field="baseline",
        )
    return _resolve_commit(refs, commit.parents[0], "baseline")


def _resolve_commit(refs: Refs, ref: str, field: str) -> Commit:
    try:
        return refs.commit(ref)
    except InvalidRequestError as error:
        raise InvalidRequestError(str(error), field=field) from error


def _warn_of_few_rounds(
    rounds: int, budget_s: float | None, round_s: float, *, alone: bool
) -> list[str]:
    warnings = [build_budget_warning(budget_s, round_s, rounds, alone=alone)]
    if rounds < FEWEST_BLOCKS and not alone:
        warnings.append(
            f"with {format_items(rounds, 'round')} no verdict is possible; 5 is the minimum, 7 or "
            "more is better"
        )
    return [warning for warning in warnings if warning]


def _warn_of_few_builds(builds: int) -> list[str]:
    if builds in (1, *range(ENOUGH_BUILDS, MAX_BUILDS + 1)):
        return []
    return [
        f"{builds} builds say little about the difference between builds; {ENOUGH_BUILDS} or more "
        "are better"
    ]


def _warn_of_unusable_hosts(placements: tuple[Roles, ...]) -> list[str]:
    notes = []
    named = [one.host for roles in placements for one in roles.values() if one.host is not None]
    for host in dict.fromkeys(named):
        if host.state == HostState.UNREACHABLE:
            notes.append(f"{host.name} could not be reached the last time: {host.message}")
        elif host.state in HELD:
            state = host.get_state_display().lower()
            notes.append(f"{host.name} is {state} ({host.message}): the run waits for its release")
    return notes


def split_cases(case_s: Sequence[float], limit_s: float = JOB_S) -> list[range]:
    """Split contests into jobs: neighbours that last at most `limit_s` together, at least one.

    `case_s`: for each contest, or each case without one, the duration of all its trials.
    """
    parts, begin, total = [], 0, 0.0
    for at, seconds in enumerate(case_s):
        if at > begin and total + seconds > limit_s:
            parts.append(range(begin, at))
            begin, total = at, 0.0
        total += seconds
    parts.append(range(begin, len(case_s)))
    return parts


def parse_until(name: str, *, alone: bool) -> Until:
    """Parse `until` of a request; `alone`: one commit is measured, so nothing can be decided."""
    try:
        until = Until(name)
    except ValueError as error:
        known = ", ".join(Until.values)
        raise InvalidRequestError(
            f"expected one of {known}, got {name!r}", field="until"
        ) from error
    if not alone and until in UNTIL_OF_CONTESTS:
        raise InvalidRequestError(
            f"{until} compares the values of a contest at one commit: omit the contender, or ask "
            f"for {Until.DECIDED}",
            field="until",
        )
    if alone and until not in (Until.ROUNDS, *UNTIL_OF_CONTESTS):
        raise InvalidRequestError(
            "one commit alone has nothing to decide: name a contender, or ask for a number of "
            "rounds",
            field="until",
        )
    return until


def resolve_rounds(until: Until, requested: int | None, defined: int) -> int:
    """Return the maximum number of rounds: the requested one, or the default."""
    if requested is not None:
        check_rounds(until, requested)
        return requested
    return defined if until == Until.ROUNDS else ROUNDS_AT_MOST


def resolve_builds(spec: Spec, requested: int | None, rounds: int) -> int:
    """Return how often each commit is built: as requested, else as defined if the rounds suffice.

    Two rounds measure the same build.
    """
    usable = count_usable_builds(rounds)
    if requested is None:
        return min(spec.builds, usable)
    if not 1 <= requested <= MAX_BUILDS:
        raise InvalidRequestError(
            f"expected 1 to {MAX_BUILDS} builds, got {requested}", field="builds"
        )
    if requested > 1 and not spec.has_build_steps:
        raise InvalidRequestError(
            "the definition has no build steps, so all builds would be equal: omit builds",
            field="builds",
        )
    if requested > usable:
        raise InvalidRequestError(
            f"{format_items(rounds, 'round')} can measure at most "
            f"{format_items(usable, 'build')}, two rounds each: ask for more rounds",
            field="builds",
        )
    return requested


def count_fresh_builds(plan: RunPlan) -> int:
    """Return how often to build each commit of a plan so that the noise between builds is known."""
    if not plan.spec.has_build_steps:
        return 1
    return min(ENOUGH_BUILDS, count_usable_builds(plan.rounds))


def check_rounds(until: Until, rounds: int | None) -> None:
    if rounds is None:
        return
    if until == Until.ROUNDS:
        if not 1 <= rounds <= MAX_ROUNDS:
            raise InvalidRequestError(f"expected 1 to {MAX_ROUNDS} rounds", field="rounds")
    elif not FEWEST_BLOCKS <= rounds <= ROUNDS_AT_MOST:
        raise InvalidRequestError(
            f"until decided takes at least {FEWEST_BLOCKS} rounds and at most {ROUNDS_AT_MOST}, "
            f"got {rounds}",
            field="rounds",
        )


def estimate_blocks(until: Until, rounds: int) -> BlocksLeft:
    """Return how many blocks each case of a new run takes."""
    if until == Until.ROUNDS:
        return BlocksLeft(least=rounds, typical=rounds, most=rounds)
    return estimate_blocks_left(done=0, analysed_at=0, most=rounds, needed=None)


def check_budget(budget_s: float | None, round_s: float = 0.0) -> None:
    """Check a budget; `round_s`: machine seconds of one round of all cases on all hosts, if
    known."""
    if budget_s is None:
        return
    if not 0 < budget_s < float("inf"):
        raise InvalidRequestError("expected a budget above 0", field="budget_s")
    if budget_s < round_s:
        raise InvalidRequestError(
            f"a budget of {format_duration(budget_s)} is too small for one round, which takes "
            f"{format_duration(round_s)} of machine time",
            field="budget_s",
        )


def build_budget_warning(
    budget_s: float | None, round_s: float, rounds: int, *, alone: bool
) -> str:
    """Return a warning if the budget is too small for a verdict; empty otherwise."""
    least = min(rounds, FEWEST_BLOCKS)
    if alone or budget_s is None or budget_s >= least * round_s:
        return ""
    return (
        f"the budget of {format_duration(budget_s)} is too small for the {least} rounds that a "
        f"verdict needs: {format_duration(least * round_s)} of machine time"
    )
