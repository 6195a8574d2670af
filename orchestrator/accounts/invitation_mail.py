"""Invitations by e-mail, if a mail server is configured."""

import logging
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import send_mail

from orchestrator.accounts.invitations import NewInvitation
from orchestrator.accounts.members import Member, add_article

logger = logging.getLogger(__name__)

TEXT = """\
{who} invites you to the team {team} on Pitwall, as {role}.

{link}

The link works once, until {until:%Y-%m-%d %H:%M} UTC. Ignore it if you do not
know what this is about.
"""


def build_invitation_link(new: NewInvitation) -> str:
    return f"{settings.BASE_URL}/invitations/{new.secret}"


def send_invitation(*, member: Member, new: NewInvitation) -> bool:
    """Send the invitation and return whether that succeeded; otherwise pass on the link by hand."""
    invitation = new.invitation
    if not invitation.email or not settings.EMAIL_HOST:
        return False
    text = TEXT.format(
        who=member.user.get_username(),
        team=member.team.name,
        role=add_article(invitation.role),
        link=build_invitation_link(new),
        until=invitation.expires_at,
    )
    subject = f"Invitation to the team {' '.join(member.team.name.split())} on Pitwall"
    try:
        return bool(send_mail(subject, text, None, [invitation.email]))
    except (SMTPException, OSError) as error:
        logger.warning("an invitation could not be sent by mail: %s", error)
        return False
