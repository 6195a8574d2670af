"""Commits that a client reports, which our mirror may not know yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from orchestrator.benchmarks.fetch_requests import request_unknown
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.refs import open_repository, resolve_ref
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCommit:
    """A commit as reported by a client; an empty branch is the project's default branch."""

    sha: str
    subject: str = ""
    author: str = ""
    committed_at: datetime | None = None
    parents: Sequence[str] = ()
    branch: str = ""


def store_reported_commit(*, project: Project, commit: ReportedCommit) -> Commit:
    """Return the commit of this hash; it is created if it is new.

    Data of the repository takes precedence over data of the client. If the last fetch did not bring
    the commit, another fetch is requested, and until then a commit of the default branch counts as
    the newest one.
    """
    known = project.commits.filter(sha=commit.sha).first()
    if known is not None:
        return known
    return _find_in_repository(project, commit.sha) or _append_commit(project, commit)


def store_reported_commits(*, project: Project, batch: Sequence[ReportedCommit]) -> dict[str, int]:
    """Return hash → id of many commits; new ones are created in order, as by
    `store_reported_commit`."""
    known = _load_known(project, batch)
    unknown = [each for each in batch if each.sha not in known]
    if not unknown:
        return known
    held = _find_fetched(project, [each.sha for each in unknown])
    if project.repository_url and any(each.sha not in held for each in unknown):
        request_unknown(project)
    for each in unknown:
        if each.sha in held:
            known[each.sha] = resolve_ref(project=project, ref=each.sha).pk
    return known | _append_all(project, [each for each in unknown if each.sha not in known])


def _load_known(project: Project, batch: Sequence[ReportedCommit]) -> dict[str, int]:
    shas = [each.sha for each in batch]
    return dict(project.commits.filter(sha__in=shas).values_list("sha", "pk"))


def _find_fetched(project: Project, shas: Sequence[str]) -> set[str]:
    """Return those of the hashes that the last fetch brought; none if the mirror cannot be read."""
    if not project.repository_url:
        return set()
    try:
        return open_repository(project).select_fetched(shas)
    except InvalidRequestError:
        return set()


@transaction.atomic
def _append_all(project: Project, batch: Sequence[ReportedCommit]) -> dict[str, int]:
    # Other requests with new commits wait here, and then see ours.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    known = _load_known(project, batch)
    newest = project.commits.aggregate(newest=Max("position"))["newest"]
    rows = []
    for each in (each for each in batch if each.sha not in known):
        row = build_reported_commit(project, each, _find_next_position(project, each, newest))
        newest = row.position if row.position is not None else newest
        rows.append(row)
    Commit.objects.bulk_create(rows, batch_size=1_000)
    return known | {row.sha: row.pk for row in rows}


def _find_in_repository(project: Project, sha: str) -> Commit | None:
    if not project.repository_url:
        return None
    try:
        if open_repository(project).has(sha):
            return resolve_ref(project=project, ref=sha)
    except InvalidRequestError:
        return None
    request_unknown(project)
    return None


@transaction.atomic
def _append_commit(project: Project, entry: ReportedCommit) -> Commit:
    # Other requests with new commits wait here, and then see ours.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    known = project.commits.filter(sha=entry.sha).first()
    if known is not None:
        return known
    newest = project.commits.aggregate(newest=Max("position"))["newest"]
    row = build_reported_commit(project, entry, _find_next_position(project, entry, newest))
    row.save(force_insert=True)
    return row


def _find_next_position(project: Project, commit: ReportedCommit, newest: int | None) -> int | None:
    """Return the position after the `newest` one if the commit is on the default branch."""
    if commit.branch not in ("", project.default_branch):
        return None
    return (-1 if newest is None else newest) + 1


def build_reported_commit(project: Project, commit: ReportedCommit, position: int | None) -> Commit:
    """Return an unsaved row; with a position, the commit is on the default branch."""
    return Commit(
        project=project,
        sha=commit.sha,
        parents=list(commit.parents),
        subject=commit.subject or f"Commit {commit.sha[:10]}",
        author=commit.author,
        committed_at=commit.committed_at or utc_now(),
        position=position,
        mainline=position is not None,
    )
