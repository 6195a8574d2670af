"""Sessions in the database, read by one query written by hand: every page of everybody asks it."""

from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.db import connection
from django.utils import timezone

_DATA = "SELECT session_data FROM django_session WHERE session_key = %s AND expire_date > %s"


class SessionStore(DatabaseSessionStore):
    def load(self) -> dict[str, Any]:
        with connection.cursor() as cursor:
            cursor.execute(_DATA, [self.session_key, timezone.now()])
            row = cursor.fetchone()
        if row is None:
            self._session_key = None
            return {}
        return self.decode(row[0])
