"""Writes of projects, commits and definitions."""

from collections.abc import Sequence

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.loads import check_loads
from orchestrator.benchmarks.matrix import CaseSpec
from orchestrator.benchmarks.models import Benchmark, Case, Definition, Project
from orchestrator.benchmarks.spec import Spec, parse
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.core.ids import digest_of


@transaction.atomic
def set_change_rules(
    *, member: Member, project: Project, confirm: bool, bisect: bool, minutes_a_day: int
) -> Project:
    """Set how Pitwall reacts to a suspected change, and the machine time that it may use."""
    member.require(Role.MAINTAINER, to="change a project's settings")
    if not 0 <= minutes_a_day <= 24 * 60 * 100:
        raise InvalidRequestError(
            f"expected 0 to {24 * 60 * 100} minutes a day, got {minutes_a_day}",
            field="machine_minutes_a_day",
        )
    Project.objects.filter(pk=project.pk).update(
        confirm_changes=confirm, bisect_changes=bisect, machine_minutes_a_day=minutes_a_day
    )
    record_audit(member=member, action="project.change_rules_set", subject=project)
    project.refresh_from_db()
    return project


def check_source(source: str) -> Spec:
    """Return the specification of a text; InvalidRequestError with the path if it is not valid."""
    spec = parse(source)
    check_loads(spec)
    return spec


def save_definition(*, member: Member, project: Project, slug: str, source: str) -> Definition:
    """Store a new version of the benchmark's definition; return the newest one if nothing changed.

    Raise InvalidRequestError with the path for a definition that is not valid, and ConflictError
    for a benchmark whose definition is in the repository.
    """
    member.require(Role.MEMBER, to="change a benchmark")
    check_slug(slug)
    spec = check_source(source)
    with transaction.atomic():
        benchmark = locked_benchmark(project=project, slug=slug, title=spec.title)
        if benchmark.repository_path:
            raise ConflictError(
                f"{slug} is kept in the repository: change {benchmark.repository_path} there, or "
                "keep the definition in Pitwall from now on"
            )
        newest = benchmark.definitions.order_by("-version").first()
        if newest is not None and newest.source == source:
            return newest
        definition = next_version(benchmark=benchmark, source=source, spec=spec)
        definition.created_by = member.user
        definition.save(force_insert=True)
        record_audit(member=member, action="definition.saved", subject=definition)
    return definition


def check_slug(slug: str) -> None:
    if not slug or len(slug) > 60 or not slug.replace("-", "").isalnum() or slug != slug.lower():
        raise InvalidRequestError(
            "expected lower-case letters, digits and dashes, such as hello-world", field="slug"
        )


def locked_benchmark(*, project: Project, slug: str, title: str) -> Benchmark:
    """Return the benchmark, created if it is new, with its row locked: the next version is ours."""
    benchmark, _ = Benchmark.objects.update_or_create(
        project=project, slug=slug, defaults={"title": title}
    )
    return Benchmark.objects.select_for_update().get(pk=benchmark.pk)


def next_version(*, benchmark: Benchmark, source: str, spec: Spec) -> Definition:
    """Return an unsaved version that follows the newest one."""
    newest = benchmark.definitions.order_by("-version").first()
    data = spec.model_dump(mode="json")
    return Definition(
        benchmark=benchmark,
        version=newest.version + 1 if newest else 1,
        source=source,
        spec=data,
        axes=list(spec.matrix),
        digest=digest_of(data),
    )


def case_ids_of(*, benchmark: Benchmark, cases: Sequence[CaseSpec]) -> list[int]:
    """Return the ids of these cases in their order; new ones are created."""
    ids = _case_ids(benchmark, cases)
    new = [
        Case(
            benchmark=benchmark,
            key=case.key,
            parameters=dict(case.parameters),
            label=case.label,
        )
        for case in cases
        if case.key not in ids
    ]
    if new:
        # Another process may be creating them at the same time.
        Case.objects.bulk_create(new, ignore_conflicts=True)
        ids = _case_ids(benchmark, cases)
    return [ids[case.key] for case in cases]


def _case_ids(benchmark: Benchmark, cases: Sequence[CaseSpec]) -> dict[str, int]:
    rows = benchmark.cases.filter(key__in=[case.key for case in cases])
    return dict(rows.values_list("key", "pk"))
