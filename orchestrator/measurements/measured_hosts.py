"""Which hosts somebody may name where results of a benchmark are asked for."""

from django.db.models import Exists, OuterRef, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark
from orchestrator.fleet.models import Host
from orchestrator.results.models import Series


def hosts_for(member: Member, benchmark: Benchmark) -> QuerySet[Host]:
    """All of a member's team; for a visitor those that measured the benchmark, and no others."""
    hosts = Host.objects.select_related("profile")
    if not isinstance(member, Visitor):
        return hosts.filter(team=member.team)
    series = Series.objects.filter(member.sees("benchmark__project"), benchmark=benchmark)
    return hosts.filter(Exists(series.filter(host=OuterRef("pk"))))
