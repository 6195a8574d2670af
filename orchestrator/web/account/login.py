"""Logging somebody in who has proven a password: what every way to a session goes through."""

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from django.http import HttpRequest, HttpResponse

from orchestrator.accounts.models import User


def log_in(request: HttpRequest, user: User, *, to: str) -> HttpResponse:
    """The answer that leads on: to the address `to`, or to the second factor where there is one.

    The log-in is counted and audited, and the device is known from then on.
    """
    login = Login(user=user, redirect_url=to)
    return perform_password_login(request, {"username": user.get_username()}, login)
