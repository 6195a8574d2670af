"""What hosts need of the vault: here a seal that does not open is a fault of the set-up."""

from django.db.models import Model

from orchestrator.accounts import vault
from orchestrator.accounts.vault import seal
from orchestrator.core.errors import BrokenSealError, HostSetupError

__all__ = ["seal", "unseal"]


def unseal(row: Model, column: str) -> str:
    """What is sealed in that column; HostSetupError where none of our keys opens it."""
    try:
        return vault.unseal(row, column)
    except BrokenSealError as error:
        raise HostSetupError(str(error)) from error
