"""Proven e-mail addresses of users, and protection against unproven ones.

The address of an account may have been entered by the person who sent the invitation. A provider
proves the address. Before that, anybody with access to the account could have created other ways
into it.
"""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.db import transaction

from orchestrator.accounts.models import ApiToken, User
from orchestrator.accounts.services import record_own_audit
from orchestrator.core.clock import utc_now


def has_proven(user: User, address: str) -> bool:
    return EmailAddress.objects.filter(user=user, email__iexact=address, verified=True).exists()


def load_verified_users(address: str) -> list[User]:
    """Return at most two users: two are enough to know that the address is ambiguous."""
    proven = EmailAddress.objects.filter(email__iexact=address, verified=True)
    return list(User.objects.filter(pk__in=proven.values("user")).order_by("pk")[:2])


@transaction.atomic
def reset_ways_in(user: User, address: str) -> str:
    """Remove every way into the account except the address, which is proven from now on.

    Return a description of what was removed.
    """
    links, _ = SocialAccount.objects.filter(user=user).delete()
    factors, _ = Authenticator.objects.filter(user=user).delete()
    tokens = ApiToken.objects.filter(user=user, revoked_at=None).update(revoked_at=utc_now())
    # Sessions depend on the stored password, even on an unusable one.
    user.set_unusable_password()
    user.save(update_fields=["password"])
    EmailAddress.objects.filter(user=user, email__iexact=address).delete()
    EmailAddress.objects.create(user=user, email=address.lower(), verified=True)
    removed = (
        f"its password, its sessions, {tokens} API tokens, {factors} second factors and {links} "
        "other sign-ins"
    )
    record_own_audit(user=user, action="sign-in.reset", subject=f"{user.get_username()}: {removed}")
    return removed
