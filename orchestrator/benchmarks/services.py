"""Writes of projects, commits and definitions."""

from pathlib import Path

from django.conf import settings
from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.loads import check_loads
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition, Project
from orchestrator.benchmarks.repository import CommitFacts, Repository, check_url
from orchestrator.benchmarks.spec import Spec, parse
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.core.ids import digest_of

HISTORY_LIMIT = 2_000


def repository_of(project: Project) -> Repository:
    return Repository(
        project.repository_url,
        Path(settings.DATA_DIR) / "repositories" / f"{project.pk}.git",
        allow_local=settings.ALLOW_LOCAL_REPOSITORIES,
    )


def create_project(
    *, member: Member, slug: str, name: str, repository_url: str, default_branch: str = "main"
) -> Project:
    """A project whose repository could be read just now; else InvalidRequestError."""
    member.require(Role.MEMBER, to="add a project")
    check_url(repository_url, allow_local=settings.ALLOW_LOCAL_REPOSITORIES)
    if member.team.projects.filter(slug=slug).exists():
        raise ConflictError(f"the team has a project {slug} already")
    with transaction.atomic():
        project = Project.objects.create(
            team=member.team,
            slug=slug,
            name=name or slug,
            repository_url=repository_url,
            default_branch=default_branch,
        )
        refresh_project(project=project)
        record_audit(member=member, action="project.created", subject=project)
    return project


def refresh_project(*, project: Project) -> None:
    """Fetches the repository and files the commits of its default branch in their order."""
    repository = repository_of(project)
    repository.fetch()
    tip = repository.resolve(project.default_branch)
    facts = repository.history(tip, limit=HISTORY_LIMIT)
    first = repository.count(tip) - len(facts)
    rows = [_commit_row(project, fact, first + place) for place, fact in enumerate(facts)]
    with transaction.atomic():
        Commit.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["project", "sha"],
            update_fields=["position"],
        )
        Project.objects.filter(pk=project.pk).update(fetched_at=utc_now())


def commit_of_ref(*, project: Project, ref: str) -> Commit:
    """The commit that a branch, tag or hash names; InvalidRequestError if there is none."""
    ref = ref.strip()
    known = project.commits.filter(sha=ref).first()
    if known is not None:
        return known
    repository = repository_of(project)
    # A branch may have moved since the last look.
    repository.fetch()
    sha = repository.resolve(ref)
    commit = project.commits.filter(sha=sha).first()
    if commit is None:
        row = _commit_row(project, repository.describe(sha), None)
        Commit.objects.bulk_create([row], ignore_conflicts=True)
        commit = project.commits.get(sha=sha)
    return commit


def save_definition(*, member: Member, project: Project, slug: str, source: str) -> Definition:
    """A new version of the benchmark's definition, or the newest one where nothing changed.

    InvalidRequestError, with the path into the file, for a definition that could not be run.
    """
    member.require(Role.MEMBER, to="change a benchmark")
    if not slug or len(slug) > 60 or not slug.replace("-", "").isalnum() or slug != slug.lower():
        raise InvalidRequestError(
            "expected lower-case letters, digits and dashes, such as hello-world", field="slug"
        )
    spec = parse(source)
    check_loads(spec)
    data = spec.model_dump(mode="json")
    with transaction.atomic():
        benchmark, _ = Benchmark.objects.update_or_create(
            project=project, slug=slug, defaults={"title": spec.title}
        )
        # The row lock makes the next version number ours.
        benchmark = Benchmark.objects.select_for_update().get(pk=benchmark.pk)
        newest = benchmark.definitions.order_by("-version").first()
        if newest is not None and newest.source == source:
            return newest
        definition = Definition.objects.create(
            benchmark=benchmark,
            version=newest.version + 1 if newest else 1,
            source=source,
            spec=data,
            digest=digest_of(data),
            created_by=member.user,
        )
        record_audit(member=member, action="definition.saved", subject=definition)
    return definition


def cases_of(*, benchmark: Benchmark, spec: Spec) -> list[Case]:
    """The rows of all cases of a specification, made where they are new, in matrix order."""
    wanted = expand(spec)
    Case.objects.bulk_create(
        [
            Case(
                benchmark=benchmark,
                key=case.key,
                parameters=dict(case.parameters),
                label=case.label,
            )
            for case in wanted
        ],
        ignore_conflicts=True,
    )
    rows = {case.key: case for case in benchmark.cases.filter(key__in=[c.key for c in wanted])}
    return [rows[case.key] for case in wanted]


def _commit_row(project: Project, facts: CommitFacts, position: int | None) -> Commit:
    return Commit(
        project=project,
        sha=facts.sha,
        parents=list(facts.parents),
        subject=facts.subject,
        author=facts.author,
        committed_at=facts.committed_at,
        position=position,
    )
