"""Delete a team with all its data, in small transactions.

An interrupted deletion can simply start again: the team has no members, so nothing is added.
"""

import shutil
from collections.abc import Callable, Iterator
from functools import partial

from django.db import transaction
from django.db.models import Model, QuerySet

from orchestrator.accounts.memberships import remove_team
from orchestrator.accounts.models import ApiToken, Membership, Team
from orchestrator.benchmarks.models import Benchmark, Case, Project, ShareLink
from orchestrator.core.dependents import DependentCount
from orchestrator.core.errors import ConflictError
from orchestrator.fleet.connect import get_local_work_dir
from orchestrator.fleet.models import Host
from orchestrator.reports.models import ReferenceSource
from orchestrator.results.models import Reading
from orchestrator.retention.removal_steps import remove_case, remove_project, remove_run
from orchestrator.runs.models import GoldenCheck, Run, Schedule, Trial
from orchestrator.runs.states import RUN_ENDED

#: `(done, total, what)`.
Progress = Callable[[int, int, str], None]


def list_team_dependents(team: Team) -> list[DependentCount]:
    """Return what is deleted with a team, by kind; a count may be 0."""
    rows: dict[str, QuerySet[Model]] = {
        "members": Membership.objects.filter(team=team),
        "API tokens": ApiToken.objects.filter(team=team, revoked_at=None),
        "projects": Project.with_deleted.filter(team=team),
        "benchmarks": Benchmark.with_deleted.filter(project__team=team),
        "runs": Run.objects.filter(team=team),
        "trials": Trial.objects.filter(job__run__team=team),
        "imported results": Reading.objects.filter(
            case__benchmark__project__team=team, provenance__isnull=False
        ),
        "sources of reference results": ReferenceSource.objects.filter(team=team),
        "hosts": Host.objects.filter(team=team),
    }
    return [DependentCount(title=title, count=queryset.count()) for title, queryset in rows.items()]


def check_is_idle(team: Team) -> None:
    """Raise ConflictError while a run of the team runs or waits."""
    going_on = Run.objects.filter(team=team).exclude(state__in=RUN_ENDED).count()
    if going_on:
        raise ConflictError(
            f"{going_on} run{'' if going_on == 1 else 's'} of {team.name} ha"
            f"{'s' if going_on == 1 else 've'} not ended: cancel what is still running, or wait"
        )


def remove_whole_team(*, team: Team, progress: Progress = lambda done, total, what: None) -> None:
    """Delete a team with all its rows, mirrors of repositories and folders on this machine.

    Users stay, and so do the work folders on hosts that are reached over SSH.
    """
    _close(team)
    steps = list(_iterate_steps(team))
    for done, (what, act) in enumerate(steps):
        progress(done, len(steps), what)
        act()
    progress(len(steps), len(steps), "")
    remove_team(team=team)


@transaction.atomic
def _close(team: Team) -> None:
    """Revoke everything: from now on no user, token or schedule can use the team."""
    Membership.objects.filter(team=team).delete()
    ApiToken.objects.filter(team=team).delete()
    ShareLink.objects.filter(project__team=team).delete()
    Schedule.objects.filter(team=team).delete()
    GoldenCheck.objects.filter(host__team=team).delete()
    check_is_idle(team)


def _iterate_steps(team: Team) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the steps in the order of dependencies."""
    for run in Run.objects.filter(team=team).only("created_at").order_by("pk"):
        yield f"run of {run.created_at:%Y-%m-%d}", partial(remove_run, run)
    for case in Case.objects.filter(benchmark__project__team=team).order_by("pk"):
        yield f"case {case.label}", partial(remove_case, case)
    for project in Project.with_deleted.filter(team=team).order_by("pk"):
        yield f"project {project.slug}", partial(remove_project, project)
    yield "reference results", ReferenceSource.objects.filter(team=team).delete
    for host in Host.objects.filter(team=team).order_by("pk"):
        yield f"host {host.name}", partial(_remove_host, host)


def _remove_host(host: Host) -> None:
    work_dir = get_local_work_dir(host)
    host.delete()
    shutil.rmtree(work_dir, ignore_errors=True)
