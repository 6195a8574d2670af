"""Sessions in the database, read by one query written by hand: every page of everybody asks it.

Django only signs what a session holds. A secret among it is sealed as all secrets at rest are.
"""

from typing import Any

from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.db import connection
from django.utils import timezone

from orchestrator.accounts.vault import seal_text, unseal_text
from orchestrator.core.errors import BrokenSealError

#: Of a second factor that is being set up, until a first code confirms it.
SEALED = SECRET_SESSION_KEY
_PLACE = f"django_session.{SEALED}"
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

    def encode(self, session_dict: dict[str, Any]) -> str:
        if SEALED in session_dict:
            session_dict = {**session_dict, SEALED: seal_text(session_dict[SEALED], _PLACE)}
        return super().encode(session_dict)

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """Without a secret that no key opens: the page that wants one makes another."""
        session = super().decode(session_data)
        if SEALED in session:
            try:
                session[SEALED] = unseal_text(session[SEALED], _PLACE)
            except BrokenSealError:
                del session[SEALED]
        return session
