"""Lists by cursor: stable while rows are added, and as fast on page 1000 as on page 1."""

from typing import Annotated, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from ninja import Query

Row = TypeVar("Row", bound=Model)

Cursor = Annotated[
    UUID | None, Query(description="`next` of the page before; leave it out for the first page.")
]
Limit = Annotated[int, Query(ge=1, le=200, description="How many entries a page holds at most.")]


NumberCursor = Annotated[
    int | None,
    Query(
        ge=1,
        lt=2**63,
        description="`next` of the page before; leave it out for the first page.",
    ),
]


def page_of(
    rows: QuerySet[Row], *, after: UUID | int | None, limit: int
) -> tuple[list[Row], str | None]:
    """At most `limit` rows older than the row `after`, newest first, and the next cursor.

    The primary keys are numbers or UUIDs of version 7: their order is that of time.
    """
    if after is not None:
        rows = rows.filter(pk__lt=after)
    found = list(rows.order_by("-pk")[: limit + 1])
    more = len(found) > limit
    return found[:limit], str(found[limit - 1].pk) if more else None
