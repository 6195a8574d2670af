"""Claims on rows of the database, for the heartbeat."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from orchestrator.core.heartbeat import Claim

#: A locked row must not delay the claims of other rows; the next beat tries again.
LOCK_WAIT_MS = 250


def build_row_claim(rows: QuerySet[Any], *, until: str, lasts_s: float, since: float) -> Claim:
    """Return the claim of a row that was already taken.

    `rows` finds the row by its key and its claim, so it is empty if another worker has the row now.
    `until` is the column with the end of the claim. `since`: monotonic seconds before it was taken.
    """
    return Claim(
        renew=lambda: bool(rows.update(**{until: Now() + timedelta(seconds=lasts_s)})),
        lasts_s=lasts_s,
        since=since,
        session=_open_short_session,
    )


@contextmanager
def _open_short_session() -> Iterator[None]:
    """Open a transaction that waits for no lock, on a separate connection.

    The heartbeat thread serves no request at whose end Django would close its connection.
    """
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_WAIT_MS}ms"])
            yield
    finally:
        connection.close()
