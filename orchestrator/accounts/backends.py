"""Loads the user of a session with their teams in one query."""

from typing import Any

from django.contrib.auth.backends import ModelBackend

from orchestrator.accounts.models import User
from orchestrator.accounts.selectors import load_session_user


class OneQueryBackend(ModelBackend):
    """Every page reads its user and then their team."""

    def get_user(self, user_id: Any) -> User | None:
        user = load_session_user(user_id)
        return user if user is not None and self.user_can_authenticate(user) else None
