"""The first run of a new instance: a small suite of the catalogue, measured on this machine."""

import sys

from django.conf import settings

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.core.errors import ConflictError
from orchestrator.fleet.models import UNUSABLE, Host, HostTransport
from orchestrator.fleet.services import add_local_host
from orchestrator.reports.suite_benchmarks import add_suite_benchmark
from orchestrator.runs.models import Run
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.services import create_run

HOST = "this-machine"
SUITE = "hello"


def may_offer_first_measurement(member: Member) -> bool:
    """Return whether the member may measure this machine, and the team has no run yet."""
    return (
        settings.ALLOW_LOCAL_HOST
        and member.has(Role.MAINTAINER)
        and not Run.objects.filter(team=member.team).exists()
    )


def start_first_measurement(*, member: Member) -> Run:
    """Add this machine as a host and a suite as a benchmark, unless they exist; start a run.

    Raise FetchRunningError until the files of the suite are fetched; then it can be repeated.
    """
    member.require(Role.MAINTAINER, to="measure this machine")
    if not settings.ALLOW_LOCAL_HOST:
        raise ConflictError(
            "this Pitwall measures only other machines: add a host, or ask your administrator for "
            "PITWALL_ALLOW_LOCAL_HOST=1"
        )
    host = _find_local_host(member) or add_local_host(
        member=member, name=HOST, python=sys.executable
    )
    suite = add_suite_benchmark(member=member, suite=SUITE)
    project = suite.benchmark.project
    request = RunRequest(
        benchmark=suite.benchmark.slug,
        project=project.slug,
        baseline=project.default_branch,
        contenders=(),
        hosts=(host.name,),
    )
    return create_run(member=member, request=request)


def _find_local_host(member: Member) -> Host | None:
    local = member.team.hosts.filter(transport=HostTransport.LOCAL).exclude(state__in=UNUSABLE)
    return local.order_by("created_at").first()
