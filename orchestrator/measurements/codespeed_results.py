"""Store results as clients of Codespeed send them."""

from collections import defaultdict

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.benchmarks.fetch_requests import request_unknown
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.selectors import load_projects
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.importers import codespeed
from orchestrator.importers.history_values import (
    HistoryFile,
    HistoryOptions,
    HistoryValue,
    build_slug,
    build_value,
)
from orchestrator.importers.rows import limit_rows
from orchestrator.measurements.history_import import convert_plan
from orchestrator.measurements.history_plan import build_results, plan_history
from orchestrator.measurements.incoming import MOST_RESULTS
from orchestrator.measurements.ingest import IngestResult, ingest_results


def store_codespeed_results(*, member: Member, content: bytes, token: str) -> IngestResult:
    """Store one result or a list of them, all or none; `token` is the name of the token.

    An unknown commit is stored at its date. The project must exist; the benchmark is created.
    """
    member.require(Role.MEMBER, to="send results")
    plans = [
        plan_history(_find_project(member, name), _build_file(values))
        for name, values in read_codespeed_values(content).items()
    ]
    for plan in plans:
        if plan.has_unknown_names and plan.project.repository_url:
            request_unknown(plan.project)
    for plan in plans:
        # Nothing is stored before all values are known to be storable.
        list(build_results(plan, keep_unknown=True))
    results = [each for plan in plans for each in convert_plan(member, plan, keep_unknown=True)]
    return ingest_results(member=member, results=results, token=token)


def read_codespeed_values(content: bytes) -> dict[str, list[HistoryValue]]:
    """Map the names of projects to their values.

    Raise InvalidRequestError for results that are not valid.
    """
    by_project: dict[str, list[HistoryValue]] = defaultdict(list)
    count = 0
    for row in limit_rows(codespeed.read(content)):
        if row.statistic or row.value is None:
            continue
        count += 1
        if count > MOST_RESULTS:
            raise InvalidRequestError(f"a request has at most {MOST_RESULTS} results")
        by_project[row.suite].append(build_value(row, f"result {count}", HistoryOptions()))
    if not count:
        raise InvalidRequestError("there is no result in this request", field="json")
    return by_project


def _build_file(values: list[HistoryValue]) -> HistoryFile:
    return HistoryFile(format="codespeed", values=tuple(values), unknown=0, spread=0)


def _find_project(member: Member, name: str) -> Project:
    """Return the project with this name or slug; for a token of one project, always that one."""
    projects = load_projects(member)
    if member.project is not None:
        return _get_only(projects)
    matches = [each for each in projects if name in (each.slug, each.name)]
    matches = matches or [each for each in projects if each.slug == build_slug(name, "")]
    if len(matches) != 1:
        known = ", ".join(each.slug for each in projects) or "none"
        raise NotFoundError(
            f"the team has no project {name[:60]}; its projects are: {known}. Create the project, "
            "or use a token of one project"
        )
    return matches[0]


def _get_only(projects: QuerySet[Project]) -> Project:
    project = projects.first()
    if project is None:
        raise NotFoundError("the project of this token was deleted; restore it, or use another")
    return project
