"""Reads of connections and of what was asked for on pull requests."""

from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import NotFoundError
from orchestrator.forges.models import BenchmarkRequest, Connection, Incoming


def connection_of(member: Member, project: Project) -> Connection | None:
    """The project is one of `project_for` this member."""
    return Connection.objects.filter(project=project, project__team=member.team).first()


def requests_of(connection: Connection, *, limit: int = 50) -> QuerySet[BenchmarkRequest]:
    """Newest first."""
    rows = BenchmarkRequest.objects.filter(pull__connection=connection)
    return rows.select_related("pull__connection", "run", "approved_by").order_by("-pk")[:limit]


def request_for(member: Member, request_id: UUID) -> BenchmarkRequest:
    rows = BenchmarkRequest.objects.filter(pull__connection__project__team=member.team)
    found = rows.select_related("pull__connection__project").filter(pk=request_id).first()
    if found is None:
        raise NotFoundError("nobody asked for such a benchmark in this team")
    return found


def incoming_of(connection: Connection, *, limit: int = 20) -> QuerySet[Incoming]:
    return connection.incoming.order_by("-pk")[:limit]


def connection_at(connection_id: UUID) -> Connection:
    """For a forge that calls: it is no member, and shows by its signature who it is."""
    rows = Connection.objects.select_related("project__team")
    found = rows.filter(pk=connection_id).first()
    if found is None:
        raise NotFoundError("there is no such webhook")
    return found
