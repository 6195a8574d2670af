"""Pagination by cursor: stable while rows are added, and equally fast on every page."""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from ninja import Query

from orchestrator.api.schemas.common import Text
from orchestrator.core.errors import InvalidRequestError

Row = TypeVar("Row", bound=Model)
Thing = TypeVar("Thing")

Cursor = Annotated[
    UUID | None, Query(description="`next` of the previous page; omit it for the first page.")
]
Limit = Annotated[int, Query(ge=1, le=200, description="Maximum number of entries per page.")]


NumberCursor = Annotated[
    int | None,
    Query(
        ge=1,
        lt=2**63,
        description="`next` of the previous page; omit it for the first page.",
    ),
]
NameCursor = Annotated[
    Text | None, Query(description="`next` of the previous page; omit it for the first page.")
]


def cut_page(
    rows: QuerySet[Row], *, after: UUID | int | None, limit: int
) -> tuple[list[Row], str | None]:
    """Return at most `limit` rows older than the row `after`, newest first, and the next cursor.

    The primary keys are numbers or UUIDs of version 7: their order is the order of creation.
    """
    if after is not None:
        rows = rows.filter(pk__lt=after)
    batch = list(rows.order_by("-pk")[: limit + 1])
    more = len(batch) > limit
    return batch[:limit], str(batch[limit - 1].pk) if more else None


def cut_named_page(
    things: Sequence[Thing], name_of: Callable[[Thing], str], *, after: str | None, limit: int
) -> tuple[Sequence[Thing], str | None]:
    """Paginate built-in entries, which are not in a table, by name in their own order."""
    names = [name_of(each) for each in things]
    if after is not None and after not in names:
        raise InvalidRequestError(
            "there is no such entry; omit the cursor to start again", field="cursor"
        )
    first = names.index(after) + 1 if after is not None else 0
    page = things[first : first + limit]
    more = first + limit < len(things)
    return page, names[first + limit - 1] if more else None
