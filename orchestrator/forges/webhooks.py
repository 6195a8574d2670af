"""Handle verified webhooks of a forge; each delivery counts once."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import PermissionRefusedError
from orchestrator.database.clock import read_database_time
from orchestrator.fleet.vault import unseal
from orchestrator.forges.models import BenchmarkRequest, Connection, PullRequest, ReceivedWebhook
from orchestrator.forges.notices import Comment, Notice, Push, is_genuine, read_notice
from orchestrator.runs.models import Schedule

#: Bodies of a large push have some hundred kB.
MOST_BYTES = 5_000_000
KEPT = timedelta(days=30)


def receive(connection: Connection, headers: Mapping[str, str], body: bytes) -> str:
    """Handle a delivery and return the outcome as text for the forge's log of deliveries.

    Raise PermissionRefusedError if the signature was not made with the connection's secret.
    """
    if not is_genuine(connection.kind, unseal(connection, "sealed_secret"), headers, body):
        raise PermissionRefusedError(
            "the signature does not match: set the secret that Pitwall showed for this webhook"
        )
    notice = read_notice(connection.kind, headers, body)
    try:
        with transaction.atomic():
            webhook = ReceivedWebhook.objects.create(
                connection=connection,
                delivery_id=notice.delivery_id,
                event=notice.event,
                at=utc_now(),
            )
            webhook.outcome = _handle_webhook(connection, notice)
            webhook.save(update_fields=["outcome"])
    except IntegrityError:
        return "ignored: it was already received"
    return webhook.outcome


def delete_old_webhooks(now: datetime) -> None:
    """Delete deliveries that no forge sends again."""
    old = ReceivedWebhook.objects.filter(at__lt=now - KEPT).values_list("pk", flat=True)[:500]
    ReceivedWebhook.objects.filter(pk__in=list(old)).delete()


def _handle_webhook(connection: Connection, notice: Notice) -> str:
    if notice.repository.lower() != connection.repository.lower() and (
        isinstance(notice, Push | Comment)
    ):
        return f"ignored: it is from {notice.repository[:100]}, not {connection.repository}"
    if isinstance(notice, Push):
        return _handle_push(connection, notice)
    if isinstance(notice, Comment):
        return _handle_comment(connection, notice)
    return "ignored: neither a push nor a new comment with /benchmark"


def _handle_push(connection: Connection, push: Push) -> str:
    """Make the schedules of the branch due: the next tick looks for its new commits."""
    now = read_database_time()
    request_fetch(connection.project, urgent=False)
    if not push.branch:
        return "fetching the repository"
    due = Schedule.objects.filter(
        benchmark__project=connection.project, branch=push.branch, enabled=True
    ).update(next_at=now)
    return f"fetching {push.branch[:100]}, then {due} schedule{'' if due == 1 else 's'}"


def _handle_comment(connection: Connection, comment: Comment) -> str:
    allowed = {name.lower() for name in connection.allowed_users}
    if comment.user.lower() not in allowed:
        return f"ignored: {comment.user} is not allowed to request benchmarks"
    pull, _ = PullRequest.objects.get_or_create(connection=connection, number=comment.number)
    for benchmark in comment.benchmarks:
        BenchmarkRequest.objects.get_or_create(
            pull=pull,
            note_id=comment.note_id,
            benchmark=benchmark,
            defaults={"requested_by": comment.user, "at": utc_now()},
        )
    PullRequest.objects.filter(pk=pull.pk).update(next_at=Now(), tries=0)
    return f"{', '.join(comment.benchmarks)} requested by {comment.user} on #{comment.number}"
