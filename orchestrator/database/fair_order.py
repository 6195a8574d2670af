"""Rows of several teams, in an order in which no team hides the others."""

from typing import Any

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

#: One tick wakes so many rows of a team, and so many of all teams.
MOST_OF_A_TEAM, MOST_A_TICK = 20, 200


def first_of_each_team(due: QuerySet[Any], *, team: str) -> list[Any]:
    """The keys of rows with `next_at`: of each team the first ones first. `team`: the lookup of a
    row's team."""
    place = Window(RowNumber(), partition_by=F(team), order_by=["next_at", "pk"])
    due = due.annotate(place=place).filter(place__lte=MOST_OF_A_TEAM).order_by("place", "next_at")
    return list(due.values_list("pk", flat=True)[:MOST_A_TICK])
