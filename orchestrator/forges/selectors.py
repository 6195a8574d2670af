"""Reads of connections and of benchmark requests on pull requests."""

from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import NotFoundError
from orchestrator.forges.models import BenchmarkRequest, Connection, ReceivedWebhook


def connection_of(member: Member, project: Project) -> Connection | None:
    """Return the connection. The project is one of `project_for` this member."""
    rows = Connection.objects.filter(project=project, project__team=member.team)
    return rows.select_related("project", "created_by").first()


def connection_for(member: Member, project: Project) -> Connection:
    """Return the connection. Raise NotFoundError if the project has none."""
    connection = connection_of(member, project)
    if connection is None:
        raise NotFoundError(f"the project {project.name} is not connected with a forge")
    return connection


def requests_of(connection: Connection) -> QuerySet[BenchmarkRequest]:
    """Newest first."""
    return _requests().filter(pull__connection=connection)


def request_for(member: Member, request_id: UUID) -> BenchmarkRequest:
    rows = _requests().filter(member.sees("pull__connection__project"))
    found = rows.filter(pk=request_id).first()
    if found is None:
        raise NotFoundError("there is no such benchmark request in this team")
    return found


def received_webhooks(connection: Connection) -> QuerySet[ReceivedWebhook]:
    """Newest first."""
    return connection.webhooks.order_by("-pk")


def connection_at(connection_id: UUID) -> Connection:
    """Return the connection for a webhook.

    The forge is no member; its signature authenticates it.
    """
    rows = Connection.objects.select_related("project__team")
    found = rows.filter(pk=connection_id).first()
    if found is None:
        raise NotFoundError("there is no such webhook")
    return found


def _requests() -> QuerySet[BenchmarkRequest]:
    rows = BenchmarkRequest.objects.order_by("-pk")
    return rows.select_related("pull__connection__project", "run", "approved_by")
