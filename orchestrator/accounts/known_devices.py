"""Known browsers of a user: attackers who guess passwords do not lock the user out of them.

A signed cookie names the user and the device. Failed attempts from a known device have a separate
counter with a limit of the same size.
"""

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from orchestrator.accounts.models import User
from orchestrator.core.ids import new_hex

COOKIE = "known_device"
_SALT = "pitwall.known-device"
_MAX_AGE_S = 365 * 24 * 3600


def remember_device(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Set the cookie; call it after a login with all required steps."""
    device = read_device_id(request, user.get_username()) or new_hex()
    response.set_cookie(
        COOKIE,
        signing.dumps([user.pk, device], salt=_SALT),
        max_age=_MAX_AGE_S,
        httponly=True,
        secure=settings.HTTPS,
        samesite="Lax",
    )


def read_device_id(request: HttpRequest, username: str) -> str:
    """Return the id of the device if this user logged in with it within a year, else empty."""
    try:
        user_id, device = signing.loads(
            request.COOKIES.get(COOKIE, ""), salt=_SALT, max_age=_MAX_AGE_S
        )
    except (signing.BadSignature, TypeError, ValueError):
        return ""
    return str(device) if User.objects.filter(pk=user_id, username=username).exists() else ""
