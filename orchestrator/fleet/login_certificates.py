"""The certificate of a key to log in with. An authority that the hosts trust has signed the key."""

from uuid import UUID

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.core.errors import NotFoundError
from orchestrator.fleet import selectors
from orchestrator.fleet.models import Credential
from orchestrator.transport.certificates import UserCertificate

MOST_CHARACTERS = 10_000


def set_certificate(*, member: Member, credential_id: UUID, certificate: str) -> Credential:
    """Store the certificate of a key for all hosts that have the key; empty: none.

    Connections that are open stay open.
    """
    member.require(Role.MAINTAINER, to="change the certificate of a key")
    credential = selectors.load_credentials(member).filter(pk=credential_id).first()
    if credential is None:
        raise NotFoundError.build_for_team("key")
    text = certificate.strip()
    parsed = UserCertificate.parse(text, credential.public_key) if text else None
    with transaction.atomic():
        credential.certificate = parsed.line if parsed else ""
        credential.save(update_fields=["certificate"])
        what = parsed.describe() if parsed else "none"
        subject = f"{credential}: {what}"
        record_audit(member=member, action="credential.certificate_changed", subject=subject)
    return credential


def read_certificate(credential: Credential) -> UserCertificate | None:
    """Return the stored certificate of a key; None without one."""
    if not credential.certificate:
        return None
    return UserCertificate.parse(credential.certificate, credential.public_key)
