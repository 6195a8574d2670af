"""Import the history of another tool: a preview first, and then the results as a member chose.

A file waits for a member after its preview. The results keep the dates of the file. Changes in them
become change points, but raise no alerts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.commit_matching import store_matched_commits
from orchestrator.benchmarks.dated_commits import store_dated_commits
from orchestrator.benchmarks.fetch_requests import load_fetch, request_fetch
from orchestrator.benchmarks.models import Benchmark, Project
from orchestrator.benchmarks.selectors import load_project
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.importers.history_values import HistoryOptions, get_history_format, read_history
from orchestrator.measurements.age_check import find_age_errors
from orchestrator.measurements.history_plan import (
    HistoryPlan,
    build_preview,
    build_results,
    list_reported_commits,
    plan_history,
)
from orchestrator.measurements.imports import import_for, queue_import
from orchestrator.measurements.incoming import ResultIn
from orchestrator.results.models import ImportState, ResultImport, UnknownCommits

#: The most bytes of a history as it is sent.
MAX_BYTES = 32 * 1024**2
#: A preview waits at most this long for the repository to be fetched.
FETCH_PATIENCE = timedelta(minutes=10)


def queue_history(
    *, member: Member, path: Path, project: str, name: str, options: HistoryOptions
) -> ResultImport:
    """Store a file for the workers, which write its preview."""
    member.require(Role.MEMBER, to="import a history")
    record = load_project(member, project)
    if options.format:
        get_history_format(options.format)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise InvalidRequestError(
            f"{name} has more than {MAX_BYTES // 1024**2} MiB; send it in parts", field="file"
        )
    return queue_import(
        member=member, path=path, project=record.slug, name=name, history=asdict(options)
    )


@transaction.atomic
def start_history(*, member: Member, import_id: UUID, unknown_commits: str) -> ResultImport:
    """Start the import of a history whose preview is ready."""
    row = _lock_ready(member, import_id)
    if unknown_commits not in UnknownCommits.values:
        raise InvalidRequestError(
            f"expected one of {', '.join(UnknownCommits.values)}, got {unknown_commits!r}",
            field="unknown_commits",
        )
    preview = row.preview or {}
    if unknown_commits == UnknownCommits.SKIP and preview["unknown_values"] == preview["values"]:
        raise InvalidRequestError(
            f"no commit of the file is in the repository of {row.project}, so "
            "nothing would be left; keep the unknown commits, or choose another project",
            field="unknown_commits",
        )
    row.state, row.unknown_commits = ImportState.QUEUED, unknown_commits
    row.save(update_fields=["state", "unknown_commits"])
    record_audit(member=member, action="history.import_started", subject=row.name)
    return row


@transaction.atomic
def discard_history(*, member: Member, import_id: UUID) -> None:
    """Remove a file whose import was not started."""
    row = _lock_ready(member, import_id)
    record_audit(member=member, action="history.import_discarded", subject=row.name)
    row.delete()


def _lock_ready(member: Member, import_id: UUID) -> ResultImport:
    member.require(Role.MEMBER, to="import a history")
    seen = import_for(member, import_id)
    row = ResultImport.objects.select_for_update(of=("self",)).get(pk=seen.pk)
    if row.state != ImportState.READY:
        raise ConflictError(
            f"the import of {row.name} is {row.get_state_display().lower()}; only one that is "
            "ready can be started or discarded"
        )
    return row


def read_plan(row: ResultImport, member: Member, path: Path) -> HistoryPlan:
    """Read the file of an import, and match its commits."""
    options = HistoryOptions(**(row.history or {}))
    project = load_project(member, row.project)
    return plan_history(project, read_history(row.name, path.read_bytes(), options))


def preview_plan(plan: HistoryPlan, *, fetch_problem: str) -> dict[str, object]:
    """Return the preview as JSON; InvalidRequestError if a value cannot be stored."""
    oldest = None
    for result in build_results(plan, keep_unknown=True):
        # They are sorted by time.
        if oldest is None and result.at is not None:
            oldest = result
    if oldest is not None:
        _check_age(plan.project, oldest)
    return asdict(build_preview(plan, fetch_problem=fetch_problem))


def _check_age(project: Project, oldest: ResultIn) -> None:
    for fault in find_age_errors([Benchmark(project=project)], [oldest], utc_now()).values():
        raise InvalidRequestError(f"the oldest result cannot be imported: {fault}")


def is_fetch_needed(row: ResultImport, plan: HistoryPlan) -> bool:
    """Return whether unknown commits may be known after a fetch; the fetch is then requested."""
    project = plan.project
    if not project.repository_url or not plan.has_unknown_names:
        return False
    if _has_waited(row, project):
        return False
    if not load_fetch(project).is_going_on:
        request_fetch(project)
    return True


def is_fetch_running(row: ResultImport, member: Member) -> bool:
    """Return whether the import still has to wait for the fetch that it requested."""
    project = load_project(member, row.project)
    return load_fetch(project).is_going_on and not _has_waited(row, project)


def describe_fetch_problem(row: ResultImport, project: Project) -> str:
    """Return why the newest commits may be unknown; empty if they are known."""
    fetch = load_fetch(project)
    if not project.repository_url or fetch.has_succeeded_since(row.created_at):
        return ""
    if fetch.state == "failed":
        return fetch.error
    return "the fetch has not ended yet" if fetch.is_going_on else ""


def _has_waited(row: ResultImport, project: Project) -> bool:
    fetch = load_fetch(project)
    return (
        fetch.has_succeeded_since(row.created_at)
        or fetch.has_failed_since(row.created_at, 1)
        or utc_now() - row.created_at > FETCH_PATIENCE
    )


def convert_plan(member: Member, plan: HistoryPlan, *, keep_unknown: bool) -> Iterator[ResultIn]:
    """Store the commits and benchmarks of a history, and yield its results.

    Call it outside of a transaction: it reads git.
    """
    project = plan.project
    store_matched_commits(project, plan.known_shas)
    if keep_unknown:
        store_dated_commits(project, list_reported_commits(plan))
    used = {value.benchmark for value in plan.file.values if keep_unknown or plan.find_sha(value)}
    provide_benchmarks(member, project, sorted(used))
    dates = dict(project.commits.values_list("sha", "committed_at"))
    return build_results(plan, keep_unknown=keep_unknown, date_of=partial(dates.get))


def provide_benchmarks(member: Member, project: Project, slugs: Sequence[str]) -> None:
    """Create the benchmarks that the project does not have; they have no definition.

    A draft of that name becomes a benchmark.
    """
    member.require(Role.MEMBER, to="import results")
    for slug in slugs:
        benchmark, is_new = Benchmark.objects.get_or_create(
            project=project, slug=slug, defaults={"title": slug.replace("-", " ")}
        )
        if is_new:
            record_audit(member=member, action="benchmark.imported", subject=benchmark)
        elif benchmark.is_draft:
            Benchmark.objects.filter(pk=benchmark.pk).update(is_draft=False)
