"""The hosts that a user may name in queries about a benchmark."""

from django.db.models import Exists, OuterRef, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark
from orchestrator.fleet.models import Host
from orchestrator.results.models import Series


def load_visible_hosts(member: Member, benchmark: Benchmark) -> QuerySet[Host]:
    """Return all hosts of a member's team; for a visitor only those that measured the benchmark."""
    hosts = Host.objects.select_related("profile")
    if not isinstance(member, Visitor):
        return hosts.filter(team=member.team)
    series = Series.objects.filter(member.sees("benchmark__project"), benchmark=benchmark)
    return hosts.filter(Exists(series.filter(host=OuterRef("pk"))))
