"""Reads of connections and of benchmark requests on pull requests."""

from uuid import UUID

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import NotFoundError
from orchestrator.forges.models import BenchmarkRequest, Connection, ReceivedWebhook


def find_connection(member: Member, project: Project) -> Connection | None:
    """Return the connection. The project is one of `load_project` this member."""
    rows = Connection.objects.filter(project=project, project__team=member.team)
    return rows.select_related("project", "created_by").first()


def load_connection(member: Member, project: Project) -> Connection:
    """Return the connection. Raise NotFoundError if the project has none."""
    connection = find_connection(member, project)
    if connection is None:
        raise NotFoundError(f"the project {project.name} is not connected with a forge")
    return connection


def load_requests(connection: Connection) -> QuerySet[BenchmarkRequest]:
    """Newest first."""
    return _select_requests().filter(pull__connection=connection)


def request_for(member: Member, request_id: UUID) -> BenchmarkRequest:
    rows = _select_requests().filter(member.sees("pull__connection__project"))
    request = rows.filter(pk=request_id).first()
    if request is None:
        raise NotFoundError.build_for_team("benchmark request")
    return request


def load_webhooks(connection: Connection) -> QuerySet[ReceivedWebhook]:
    """Newest first."""
    return connection.webhooks.order_by("-pk")


def load_connection_by_id(connection_id: UUID) -> Connection:
    """Return the connection for a webhook.

    The forge is no member; its signature authenticates it.
    """
    rows = Connection.objects.filter(project__deleted_at=None).select_related("project__team")
    connection = rows.filter(pk=connection_id).first()
    if connection is None:
        raise NotFoundError("there is no such webhook; copy its address from the project page")
    return connection


def _select_requests() -> QuerySet[BenchmarkRequest]:
    rows = BenchmarkRequest.objects.order_by("-pk")
    return rows.select_related("pull__connection__project", "run", "approved_by")
