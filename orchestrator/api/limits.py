"""How many requests a token may make a minute, and an address without a valid one."""

from uuid import UUID

from django.conf import settings

from orchestrator.operations.rates import Rate, count


class TooManyRequestsError(Exception):
    """A token or an address has used up its minute."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(
            f"{rate.whose} may make {rate.limit} requests a minute; "
            f"retry in {rate.reset_s} s, and send fewer requests, for example with ?wait="
        )
        self.rate = rate


def count_request(token: UUID) -> Rate | None:
    """Counts one; None where nothing is limited, and while there is no Redis."""
    return count(token.hex, settings.API_REQUESTS_A_MINUTE, "this API token")
