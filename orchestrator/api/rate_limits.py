"""Rate limits: requests per minute of a token, and of an address without a valid token."""

from uuid import UUID

from django.conf import settings

from orchestrator.operations.rates import Rate, count


class TooManyRequestsError(Exception):
    """A token or an address exceeded its requests per minute."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(
            f"{rate.whose} may make {rate.limit} requests a minute; "
            f"retry in {rate.reset_s} s, and send fewer requests, for example with ?wait="
        )
        self.rate = rate


def count_request(token: UUID) -> Rate | None:
    """Count a request; None without a limit, and while Redis is down."""
    return count(token.hex, settings.API_REQUESTS_A_MINUTE, "this API token")
