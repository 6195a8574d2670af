"""`manage.py remove_second_factor alice`: for a user who lost the phone and the recovery codes."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from orchestrator.accounts.models import User
from orchestrator.accounts.services import record_system_audit


class Command(BaseCommand):
    help = "Remove a user's second factor and recovery codes; the password stays."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"there is no user {options['username']}")
        removed, _ = Authenticator.objects.filter(user=user).delete()
        if not removed:
            raise CommandError(f"{user.username} has no second factor")
        for membership in user.memberships.select_related("team"):
            record_system_audit(
                team=membership.team, action="second-factor.removed", subject=user.username
            )
        self.stdout.write(f"{user.username} now logs in with the password only.")
