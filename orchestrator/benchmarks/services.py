"""Writes of commits and definitions.

A definition is stored in Pitwall, or in a file of the measured repository that is read at a
commit. One file is one definition: `.pitwall.yaml`, and `.pitwall/<benchmark>.yaml` for more.
"""

import re
from collections.abc import Collection, Sequence

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, User
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.load_specs import check_loads
from orchestrator.benchmarks.matrix import CaseSpec
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition, Project
from orchestrator.benchmarks.refs import check_fetched, open_repository, resolve_ref
from orchestrator.benchmarks.selectors import load_latest_definition
from orchestrator.benchmarks.spec import MAX_SOURCE_BYTES, Spec, parse
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.core.ids import hash_value

ROOT_FILE = ".pitwall.yaml"
FOLDER = ".pitwall/"
_FILE = re.compile(r"^\.pitwall(?:/(?P<slug>[a-z0-9][a-z0-9-]{0,59}))?\.yaml$")


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
        benchmark = lock_benchmark(project=project, slug=slug, title=spec.title)
        if benchmark.repository_path:
            raise ConflictError(
                f"the benchmark {slug} is stored in the repository: change "
                f"{benchmark.repository_path} there, or store the definition in Pitwall"
            )
        if benchmark.is_draft:
            Benchmark.objects.filter(pk=benchmark.pk).update(is_draft=False)
        return _save_version(member, benchmark, source, spec)


def save_draft(*, member: Member, project: Project, slug: str, source: str) -> Definition:
    """Store the definition of a benchmark that is not in use yet; errors as `save_definition`.

    Raise ConflictError if a saved benchmark has the name.
    """
    member.require(Role.MEMBER, to="change a benchmark")
    check_slug(slug)
    spec = check_source(source)
    with transaction.atomic():
        benchmark = lock_benchmark(project=project, slug=slug, title=spec.title, is_draft=True)
        if not benchmark.is_draft:
            raise ConflictError(
                f"the project {project.slug} already has a benchmark {slug}: choose another short "
                "name, or change that benchmark on its page"
            )
        return _save_version(member, benchmark, source, spec)


def _save_version(member: Member, benchmark: Benchmark, source: str, spec: Spec) -> Definition:
    """Store a new version; return the newest one if its text is the same."""
    newest = benchmark.definitions.order_by("-version").first()
    if newest is not None and newest.source == source:
        return newest
    definition = build_next_version(benchmark=benchmark, source=source, spec=spec)
    definition.created_by = member.user
    definition.save(force_insert=True)
    record_audit(member=member, action="definition.saved", subject=definition)
    return definition


def check_slug(slug: str) -> None:
    if not slug or len(slug) > 60 or not slug.replace("-", "").isalnum() or slug != slug.lower():
        raise InvalidRequestError(
            "expected lower-case letters, digits and dashes, such as hello-world", field="slug"
        )


def lock_benchmark(*, project: Project, slug: str, title: str, is_draft: bool = False) -> Benchmark:
    """Return the benchmark with its row locked: the next version is ours.

    A new one is created, as a draft with `is_draft`.
    """
    benchmark, _ = Benchmark.objects.update_or_create(
        project=project,
        slug=slug,
        defaults={"title": title},
        create_defaults={"title": title, "is_draft": is_draft},
    )
    return Benchmark.objects.select_for_update().get(pk=benchmark.pk)


def build_next_version(*, benchmark: Benchmark, source: str, spec: Spec) -> Definition:
    """Return an unsaved version that follows the newest one."""
    newest = benchmark.definitions.order_by("-version").first()
    data = spec.model_dump(mode="json")
    return Definition(
        benchmark=benchmark,
        version=newest.version + 1 if newest else 1,
        source=source,
        spec=data,
        axes=list(spec.matrix),
        digest=hash_value(data),
    )


def store_case_rows(*, benchmark: Benchmark, cases: Sequence[CaseSpec]) -> list[int]:
    """Return the ids of these cases in their order; new ones are created."""
    ids = _load_case_ids(benchmark, cases)
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
        ids = _load_case_ids(benchmark, cases)
    return [ids[case.key] for case in cases]


def show_cases(ids: Collection[int]) -> None:
    """Show these cases again if they are hidden, because a run measures them."""
    Case.objects.filter(pk__in=ids).exclude(hidden_at=None).update(hidden_at=None)


def _load_case_ids(benchmark: Benchmark, cases: Sequence[CaseSpec]) -> dict[str, int]:
    rows = benchmark.cases.filter(key__in=[case.key for case in cases])
    return dict(rows.values_list("key", "pk"))


def find_definition_files(*, project: Project, ref: str = "") -> tuple[Commit, list[str]]:
    """Return the definition files of a commit (default: the newest one of the default branch)."""
    commit = resolve_ref(project=project, ref=ref or project.default_branch)
    paths = open_repository(project).files(commit.sha, ROOT_FILE, FOLDER)
    return commit, sorted(path for path in paths if _FILE.match(path))


def build_slug(project: Project, path: str) -> str:
    """Return the default name of a benchmark in this file."""
    match = _FILE.match(path)
    return (match["slug"] if match else None) or project.slug


def import_definition(
    *, member: Member, project: Project, path: str, slug: str = "", ref: str = ""
) -> Definition:
    """Create a benchmark whose definition is from now on a file of the repository.

    The file is read at `ref` (default: the default branch). A benchmark of this name in Pitwall
    continues with its history.
    """
    member.require(Role.MEMBER, to="import a benchmark")
    if not _FILE.match(path):
        raise InvalidRequestError(
            f"expected {ROOT_FILE} or {FOLDER}NAME.yaml, got {path!r}", field="path"
        )
    slug = slug or build_slug(project, path)
    check_slug(slug)
    commit = resolve_ref(project=project, ref=ref or project.default_branch)
    source = _read_source(project, commit, path)
    spec = _parse_spec(source, commit, path)
    with transaction.atomic():
        benchmark = lock_benchmark(project=project, slug=slug, title=spec.title)
        Benchmark.objects.filter(pk=benchmark.pk).update(repository_path=path, is_draft=False)
        benchmark.repository_path = path
        definition = store_definition(
            _find_or_build_version(benchmark, source, commit), by=member.user
        )
        record_audit(member=member, action="benchmark.imported", subject=benchmark)
    return definition


def store_in_pitwall(*, member: Member, benchmark: Benchmark) -> None:
    """Keep the definition in Pitwall from now on; the file of the repository is not read."""
    member.require(Role.MEMBER, to="change a benchmark")
    with transaction.atomic():
        Benchmark.objects.filter(pk=benchmark.pk).update(repository_path="")
        record_audit(member=member, action="benchmark.kept_in_pitwall", subject=benchmark)


def load_definition_at(benchmark: Benchmark, commit: Commit) -> Definition:
    """Return the definition for measuring a commit; it is unsaved if the file is new.

    For a benchmark in Pitwall, it is the newest version for every commit.
    """
    path = benchmark.repository_path
    if not path:
        return load_latest_definition(benchmark)
    return _find_or_build_version(benchmark, _read_source(benchmark.project, commit, path), commit)


def store_definition(definition: Definition, *, by: User | None) -> Definition:
    """Store a definition from `load_definition_at` once; return the stored one if it exists."""
    if not definition._state.adding:
        return definition
    with transaction.atomic():
        benchmark = Benchmark.with_deleted.select_for_update().get(pk=definition.benchmark_id)
        known = _find_stored(benchmark, definition.source)
        if known is not None:
            return known
        newest = benchmark.definitions.order_by("-version").first()
        definition.version = newest.version + 1 if newest else 1
        definition.created_by = by
        definition.save(force_insert=True)
        Benchmark.objects.filter(pk=benchmark.pk).update(title=definition.spec["title"])
    return definition


def _find_or_build_version(benchmark: Benchmark, source: str, commit: Commit) -> Definition:
    known = _find_stored(benchmark, source)
    if known is not None:
        return known
    path = benchmark.repository_path
    definition = build_next_version(
        benchmark=benchmark, source=source, spec=_parse_spec(source, commit, path)
    )
    definition.commit, definition.path = commit, path
    return definition


def _find_stored(benchmark: Benchmark, source: str) -> Definition | None:
    return benchmark.definitions.filter(source=source).order_by("-version").first()


def _read_source(project: Project, commit: Commit, path: str) -> str:
    repository = open_repository(project)
    if not repository.has(commit.sha):
        check_fetched(project, known=False)
    size = repository.files(commit.sha, path).get(path)
    if size is None:
        raise InvalidRequestError(
            f"there is no file {path} at {commit.short_sha}: add it there, choose a commit that "
            "has it, or store the definition in Pitwall"
        )
    if size > MAX_SOURCE_BYTES:
        raise InvalidRequestError(
            f"{path} at {commit.short_sha}: a definition has at most {MAX_SOURCE_BYTES // 1024} KiB"
        )
    try:
        return repository.read(commit.sha, path).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"{path} at {commit.short_sha}: byte {error.start} is not UTF-8"
        ) from error


def _parse_spec(source: str, commit: Commit, path: str) -> Spec:
    try:
        return check_source(source)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{path} at {commit.short_sha}: {error}") from error
