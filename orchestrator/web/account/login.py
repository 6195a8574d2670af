"""Start a session for a user whose password was checked; every login ends here."""

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from django.http import HttpRequest, HttpResponse

from orchestrator.accounts.models import User


def log_in(request: HttpRequest, user: User, *, to: str) -> HttpResponse:
    """Return a redirect to the address `to`, or to the second factor if there is one.

    The login is counted and audited, and the device is remembered.
    """
    login = Login(user=user, redirect_url=to)
    return perform_password_login(request, {"username": user.get_username()}, login)
