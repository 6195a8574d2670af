"""The first user of an instance, created with the link that `make run` prints.

The link works once, for an hour, and only while there is no user. Only the digest of its secret is
stored, in the cache that all web processes share.
"""

import hmac

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.utils.text import slugify

from orchestrator.accounts.members import Member, build_member
from orchestrator.accounts.models import Membership, Role, User
from orchestrator.accounts.new_accounts import create_account
from orchestrator.accounts.new_teams import start_team
from orchestrator.core.errors import GoneError, InvalidRequestError, PitwallError
from orchestrator.core.issued_secrets import Kind, hash_secret, new_secret

SETUP_LINK_S = 3_600
_KEY = "setup-link"


def has_users() -> bool:
    return User.objects.exists()


def create_setup_link() -> str:
    """Return the address of the page that creates the first user; invalidate an earlier link."""
    secret = new_secret(Kind.SETUP)
    cache.set(_KEY, secret.digest, timeout=SETUP_LINK_S)
    return f"{settings.BASE_URL}/setup/{secret.text}"


def check_setup_link(secret: str) -> None:
    """Raise GoneError unless the link may still be used."""
    if has_users():
        raise GoneError("Pitwall already has a user; log in, or ask an owner for an invitation")
    known = cache.get(_KEY)
    if known is None or not hmac.compare_digest(known, hash_secret(secret)):
        raise GoneError(
            "this link has expired or was replaced; `manage.py setup_link` on the "
            "server prints a new one"
        )


@transaction.atomic
def create_first_owner(*, secret: str, username: str, password: str, team: str) -> Member:
    """Create the first user as the owner of a new team; if either is invalid, create neither.

    Raises GoneError if the link was used in the meantime, InvalidRequestError with the field.
    """
    check_setup_link(secret)
    if not cache.delete(_KEY):
        raise GoneError("this link was just used; log in")
    user = create_account(username=username, password=password)
    slug = slugify(team)[:50]
    if not slug:
        raise InvalidRequestError("enter a team name with letters or digits", field="team")
    try:
        start_team(slug=slug, name=team, owner=username)
    except PitwallError as error:
        raise InvalidRequestError(str(error), field="team") from error
    return build_member(Membership.objects.get(user=user, role=Role.OWNER))
