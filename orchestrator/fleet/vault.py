"""Unseal columns of hosts. A seal that does not open is a fault of the host's set-up."""

from django.db.models import Model

from orchestrator.accounts import vault
from orchestrator.accounts.vault import seal
from orchestrator.core.errors import BrokenSealError, HostSetupError

__all__ = ["seal", "unseal"]


def unseal(row: Model, column: str) -> str:
    """Return the unsealed value of a column. Raise HostSetupError if no key opens it."""
    try:
        return vault.unseal(row, column)
    except BrokenSealError as error:
        raise HostSetupError(str(error)) from error
