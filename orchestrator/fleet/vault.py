"""What hosts need of the vault: here a seal that does not open is a fault of the set-up."""

from orchestrator.accounts import vault
from orchestrator.accounts.vault import seal
from orchestrator.core.errors import BrokenSealError, HostSetupError

__all__ = ["seal", "unseal"]


def unseal(sealed: bytes | memoryview) -> str:
    """The sealed text; HostSetupError where none of our keys opens it."""
    try:
        return vault.unseal(sealed)
    except BrokenSealError as error:
        raise HostSetupError(str(error)) from error
