"""Select rows of several teams in an order that is fair to each team."""

from typing import Any

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

#: The most rows that one tick wakes: of one team, and of all teams.
MOST_OF_A_TEAM, MOST_A_TICK = 20, 200


def select_first_of_each_team(due: QuerySet[Any], *, team: str) -> list[Any]:
    """Return the keys of due rows with `next_at`: the first of each team, then the second ones.

    `team`: the lookup of a row's team.
    """
    place = Window(RowNumber(), partition_by=F(team), order_by=["next_at", "pk"])
    due = due.annotate(place=place).filter(place__lte=MOST_OF_A_TEAM).order_by("place", "next_at")
    return list(due.values_list("pk", flat=True)[:MOST_A_TICK])
