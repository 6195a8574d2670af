"""Sessions in the database, read by one query in SQL, since every page needs it.

Django only signs the data of a session. A secret in it is sealed like all secrets at rest.
"""

from typing import Any

from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.db import connection
from django.utils import timezone

from orchestrator.accounts.vault import seal_text, unseal_text
from orchestrator.core.errors import BrokenSealError

#: The secret of a second factor during its setup, until a first code confirms it.
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
        """Decode without a secret that no key opens: the page that needs it creates another."""
        session = super().decode(session_data)
        if SEALED in session:
            try:
                session[SEALED] = unseal_text(session[SEALED], _PLACE)
            except BrokenSealError:
                del session[SEALED]
        return session
