"""Private keys at rest: sealed with a key derived from the installation's secret."""

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from orchestrator.core.errors import HostSetupError


def seal(text: str) -> bytes:
    return _fernet().encrypt(text.encode())


def unseal(sealed: bytes | memoryview) -> str:
    """The sealed text; HostSetupError where the installation's secret has changed since."""
    try:
        return _fernet().decrypt(bytes(sealed)).decode()
    except InvalidToken as error:
        raise HostSetupError(
            "a stored private key cannot be opened: PITWALL_SECRET_KEY is not the one it was "
            "sealed with; restore that secret or add the key again"
        ) from error


def _fernet() -> Fernet:
    if not settings.SECRET_KEY_IS_GIVEN:
        raise HostSetupError("set PITWALL_SECRET_KEY: private keys are sealed with it")
    derived = HKDF(
        algorithm=hashes.SHA256(), length=32, salt=None, info=b"pitwall credential vault"
    ).derive(settings.SECRET_KEY.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
