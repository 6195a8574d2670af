"""Creation of accounts, with checks of the username and the password."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from orchestrator.accounts.models import User
from orchestrator.core.errors import InvalidRequestError


def create_account(*, username: str, password: str, email: str = "") -> User:
    """Create a user without a team; InvalidRequestError with the field that is invalid."""
    user = User(username=username, email=email)
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        message = " ".join(error.message_dict.get("username", error.messages))
        raise InvalidRequestError(message, field="username") from error
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidRequestError(" ".join(error.messages), field="password") from error
    user.set_password(password)
    user.save()
    return user
