"""Reads of projects, benchmarks, definitions and commits."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, Max, OuterRef, Prefetch, Q, QuerySet, Sum

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Team
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.auxiliary import Role
from orchestrator.benchmarks.fields import Scalar
from orchestrator.benchmarks.load_specs import (
    estimate_trials_s,
    get_planned_loop,
    has_prepare_steps,
    list_case_metrics,
    list_roles,
    map_primary_metrics,
)
from orchestrator.benchmarks.matrix import CaseSpec, build_resolver, expand
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition, Fetch, Project
from orchestrator.benchmarks.secret_names import list_secret_names
from orchestrator.benchmarks.spec import Spec, from_data
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.loadtools.model import Model

#: The fewest digits of a hash that identify a commit.
LEAST_DIGITS = 7
#: How many commits with the same first digits are loaded to detect an ambiguity.
_MOST_ALIKE = 20


def load_projects(member: Member) -> QuerySet[Project]:
    return (
        Project.objects.filter(_build_condition(member))
        .select_related("fetch")
        .prefetch_related(Prefetch("benchmarks", Benchmark.objects.filter(is_draft=False)))
    )


def sum_mirror_bytes(team: Team) -> int:
    """Return the bytes of the mirrors of the team's repositories, each as of its last fetch."""
    fetches = Fetch.objects.filter(project__team=team)
    used: int | None = fetches.aggregate(used=Sum("mirror_bytes"))["used"]
    return used or 0


def load_project(member: Member, slug: str) -> Project:
    project = Project.objects.filter(_build_condition(member), slug=slug).first()
    if project is None:
        raise NotFoundError(f"the team has no project {slug}; check the spelling and the team")
    return project


def _build_condition(member: Member) -> Q:
    return member.sees("pk", team="team")


def load_benchmarks(member: Member) -> QuerySet[Benchmark]:
    """Return all benchmarks of the member's team, without drafts."""
    return _load_with_drafts(member).filter(is_draft=False)


def _load_with_drafts(member: Member) -> QuerySet[Benchmark]:
    return Benchmark.objects.filter(member.sees("project")).select_related("project")


def load_defined_benchmarks(member: Member) -> QuerySet[Benchmark]:
    """Return the benchmarks that Pitwall can measure; those of imported results have no
    definition."""
    defined = Definition.objects.filter(benchmark=OuterRef("pk"))
    return load_benchmarks(member).filter(Exists(defined))


def load_benchmarks_with_versions(member: Member) -> QuerySet[Any]:
    """Return benchmarks with their cases, and the number of the newest definition as `version`."""
    return _add_version(load_benchmarks(member))


def load_benchmark_with_version(member: Member, slug: str, project: str) -> Any:
    """Return one of them, also a draft."""
    chosen = _load_with_drafts(member).filter(pk=load_benchmark(member, slug, project).pk)
    return _add_version(chosen).get()


def _add_version(rows: QuerySet[Benchmark]) -> QuerySet[Any]:
    return rows.annotate(version=Max("definitions__version")).prefetch_related("cases")


def load_benchmark(member: Member, slug: str, project: str | None = None) -> Benchmark:
    """Return the benchmark, also a draft.

    `project` is required only if two projects share the name.
    """
    matches = _load_with_drafts(member).filter(slug=slug)
    if project:
        matches = matches.filter(project__slug=project)
    benchmarks = list(matches[:2])
    if not benchmarks:
        known = ", ".join(load_benchmarks(member).values_list("slug", flat=True)) or "none"
        raise NotFoundError(f"the team has no benchmark {slug}; its benchmarks are: {known}")
    if len(benchmarks) > 1:
        raise NotFoundError(f"several projects have a benchmark {slug}; name the project as well")
    return benchmarks[0]


def load_benchmark_by_key(member: Member, key: str) -> Benchmark:
    """Return the benchmark that `project/slug`, or `slug` alone, identifies."""
    project, _, slug = key.rpartition("/")
    return load_benchmark(member, slug, project or None)


def load_latest_definition(benchmark: Benchmark) -> Definition:
    definition = benchmark.definitions.order_by("-version").first()
    if definition is None:
        problem = f"the benchmark {benchmark.slug} has no definition yet; add one on its page"
        raise NotFoundError(problem)
    return definition


def load_definition_version(benchmark: Benchmark, version: int) -> Definition:
    definition = benchmark.definitions.filter(version=version).first()
    if definition is None:
        problem = f"the benchmark {benchmark.slug} has no version {version}; its page lists all"
        raise NotFoundError(problem)
    return definition


def read_spec(definition: Definition) -> Spec:
    """Return the specification of a definition (see `get_stored_spec`)."""
    return get_stored_spec(definition).spec


def load_case(benchmark: Benchmark, key: str) -> Case:
    case = benchmark.cases.filter(key=key).first()
    if case is None:
        raise NotFoundError(f"the benchmark {benchmark.slug} has no case {key}")
    return case


def load_commit(member: Member, benchmark: Benchmark, sha: str) -> Commit:
    """Return a known commit by its hash, or by at least the first seven digits of it."""
    return load_commits(member, benchmark, [sha])[0]


def load_commits(member: Member, benchmark: Benchmark, shas: Sequence[str]) -> list[Commit]:
    """Return `load_commit` each of these, in one query."""
    return load_project_commits(member, benchmark.project, shas)


def load_project_commits(member: Member, project: Project, shas: Sequence[str]) -> list[Commit]:
    """Return the commits of these hashes in a project; errors as for `load_commit`."""
    wanted = Q(pk__in=[])
    for sha in shas:
        if len(sha) >= LEAST_DIGITS:
            wanted |= Q(sha__startswith=sha.lower())
    known = project.commits.filter(wanted, member.sees("project"))
    if isinstance(member, Visitor):
        # Commits of runs or with points; others are stored only because they are between them.
        has_points = Q(points__series__benchmark__project=project)
        known = known.filter(has_points | Q(variants__isnull=False)).distinct()
    commits = list(known[:_MOST_ALIKE])
    return [_require_one(commits, sha, project) for sha in shas]


def _require_one(commits: Sequence[Commit], sha: str, project: Project) -> Commit:
    alike = [each for each in commits if sha and each.sha.startswith(sha.lower())]
    if not alike or len(sha) < LEAST_DIGITS:
        raise NotFoundError(f"no commit {sha or '(none)'} of {project.name} is known here")
    if len(alike) > 1:
        raise NotFoundError(f"{sha} matches several commits; give more digits")
    return alike[0]


def search_commits(project: Project, text: str, limit: int = 100) -> QuerySet[Commit]:
    """Return the newest known commits with `text` in subject or author, or at the start of the
    hash."""
    return match_commits(project, text).order_by("-committed_at", "-position")[:limit]


def match_commits(project: Project, text: str) -> QuerySet[Commit]:
    """Return all such commits, unordered."""
    commits = project.commits.all()
    if text:
        named = Q(subject__icontains=text) | Q(author__icontains=text)
        commits = commits.filter(named | Q(sha__startswith=text.lower()))
    return commits


def load_versions(benchmark: Benchmark) -> QuerySet[Any]:
    """Return all definitions of a benchmark, newest first, with `run_count`, the number of runs."""
    definitions = benchmark.definitions.select_related("created_by", "commit")
    return definitions.annotate(run_count=Count("runs")).order_by("-version")


class StoredSpec:
    """The specification of a stored definition. Each derived value is computed once, when needed.

    This is the only cache of definitions: the primary metrics of a suite with many options take
    more than a second (decision 0055). It cannot be outdated: the database refuses to change a
    version (trigger `versions_never_change`), and an import checks digests. All callers in the
    process share it: do not change it.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._resolve = build_resolver(spec)

    @cached_property
    def cases(self) -> tuple[CaseSpec, ...]:
        return tuple(expand(self.spec))

    @cached_property
    def trial_s(self) -> Mapping[str, float]:
        """The expected seconds of one trial of each case, by the case's key."""
        times = estimate_trials_s(self.spec, self.cases)
        return {case.key: each for case, each in zip(self.cases, times, strict=True)}

    @cached_property
    def primary_metrics(self) -> Mapping[str, frozenset[Model]]:
        """The metrics that decide the verdict of some case, with the loops of these cases."""
        return map_primary_metrics(self.spec)

    def list_case_metrics(self, parameters: Mapping[str, Scalar]) -> tuple[str, ...]:
        """Return the metrics that decide the verdict of a case; those of all cases if the
        definition cannot measure it, because it is of another version."""
        try:
            return list_case_metrics(self.resolve(parameters))
        except InvalidRequestError:
            return tuple(self.primary_metrics)

    def get_loop(self, parameters: Mapping[str, Scalar]) -> Model:
        """Return the loop of a case; closed if the definition cannot measure it."""
        try:
            return get_planned_loop(self.resolve(parameters).load)
        except InvalidRequestError:
            return "closed"

    @cached_property
    def roles(self) -> frozenset[Role]:
        return list_roles(self.spec)

    @cached_property
    def has_prepare_steps(self) -> bool:
        return has_prepare_steps(self.spec)

    @cached_property
    def has_secrets(self) -> bool:
        """Return whether some case names a secret of the project."""
        return bool(self.list_secret_names(case.parameters for case in self.cases))

    def list_secret_names(self, cases: Iterable[Mapping[str, Scalar]]) -> list[str]:
        """Return the secrets that the definitions of these cases name, sorted."""
        specs = {id(each): each for each in map(self.resolve, cases)}
        return list_secret_names(specs.values())

    def resolve(self, parameters: Mapping[str, Scalar]) -> Spec:
        """The definition of one case (see `resolved.resolve`)."""
        return self._resolve(parameters)


def get_stored_spec(definition: Definition) -> StoredSpec:
    """Raise InvalidRequestError for a definition that this version of Pitwall cannot read."""
    if definition._state.adding:
        return StoredSpec(parse_stored(definition))
    return load_stored_spec(definition.pk, definition.digest)


@lru_cache(maxsize=64)
def load_stored_spec(definition: UUID, digest: str) -> StoredSpec:
    """`get_stored_spec` of the definition with this id and digest; a query only the first time.

    The digest is part of the key, because an import may bring back the id of a deleted definition.
    """
    row = Definition.objects.only("spec", "axes").get(pk=definition, digest=digest)
    return StoredSpec(parse_stored(row))


def parse_stored(definition: Definition) -> Spec:
    """Parse the specification, with the axes in the order of its text."""
    data = dict(definition.spec)
    for field in ("matrix", "options"):
        if field in data:
            data[field] = _order_axes(data[field], definition.axes)
    return from_data(data)


def _order_axes(axes: dict[str, Any], order: list[str]) -> dict[str, Any]:
    return {axis: axes[axis] for axis in [*order, *axes] if axis in axes}
