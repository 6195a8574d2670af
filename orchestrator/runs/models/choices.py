"""Values that the tables of runs, jobs and schedules share."""

from enum import StrEnum

from django.db import models
from django.db.models import Q


class Trigger(models.TextChoices):
    WEB = "web", "Web"
    API = "api", "API"
    SCHEDULE = "schedule", "Schedule"
    GOLDEN = "golden", "Golden run"
    CALIBRATION = "calibration", "Calibration"
    CONFIRM = "confirm", "Confirmation"
    BISECT = "bisect", "Bisection"
    BACKFILL = "backfill", "Backfill"


class Priority(models.IntegerChoices):
    """Waiting raises each but the lowest, which never delays other runs."""

    BACKGROUND = -2, "Background"
    LOW = -1, "Low"
    NORMAL = 0, "Normal"
    HIGH = 1, "High"


class Until(models.TextChoices):
    """When a run's cases need no more rounds: after all of them, or as soon as they are decided.

    Screened: a case without any sign of a change after some rounds is stopped early. The last two
    are of contests: each value against the baseline, or the order of the first places.
    """

    ROUNDS = "rounds", "All rounds"
    DECIDED = "decided", "Until decided"
    SCREENED = "screened", "Until decided, or stopped early"
    COMPARED = "compared", "Until all values are decided against the baseline"
    RANKED = "ranked", "Until the order of the first places is decided"


#: They compare values of a contest instead of commits.
UNTIL_OF_CONTESTS = frozenset({Until.COMPARED, Until.RANKED})


class HostRole(models.TextChoices):
    """The role of a host in a job; one host may play all."""

    TARGET = "target", "Target"
    GENERATOR = "generator", "Generator"
    BACKEND = "backend", "Backend"


def in_enum(field: str, values: type[StrEnum], name: str) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": [str(value) for value in values]}), name=name
    )
