"""The reference results in the suites of the catalogue.

`published.csv` has the results in Pitwall's format. `published.yaml` names their source and
describes their hardware profiles.
"""

import re
from pathlib import Path
from typing import Annotated

import yaml
from django.conf import settings
from django.db import transaction
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.accounts.members import Member
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.services import save_profile
from orchestrator.reports.reference_import import (
    NewImport,
    Progress,
    ReferenceImport,
    import_results,
)

SUITES = Path(settings.BASE_DIR) / "agents" / "suites"
_SUITE = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Strict):
    """`origin` is the address of the report, or a text that identifies it."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    origin: Annotated[str, Field(min_length=1)]


class Profile(_Strict):
    """The facts of a machine in a report; omitted ones are unknown."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    cpu_model: str = ""
    cores: int | None = None
    threads: int | None = None
    base_clock_mhz: int | None = None
    boost_clock_mhz: int | None = None
    memory_bytes: int | None = None
    os: str = ""
    notes: str = ""


class ReferenceSuite(_Strict):
    """The content of `published.yaml`."""

    source: Source
    profiles: dict[str, Profile]


def list_reference_suites() -> list[str]:
    """Return the suites of the catalogue that have reference results."""
    return sorted(path.parent.name for path in SUITES.glob("*/published.yaml"))


def load_reference_suite(suite: str) -> ReferenceSuite:
    """Return the `published.yaml` of a suite; NotFoundError if it has no reference results."""
    path = SUITES / suite / "published.yaml"
    if not _SUITE.fullmatch(suite) or not path.is_file():
        known = ", ".join(list_reference_suites())
        raise NotFoundError(f"there are no reference results of {suite!r}; there are of {known}")
    try:
        return ReferenceSuite.model_validate(yaml.safe_load(path.read_text()))
    except (yaml.YAMLError, ValidationError) as error:
        raise InvalidRequestError(f"{suite}/published.yaml: {error}") from error


def import_published(
    *, member: Member, suite: str, progress: Progress = lambda done, total: None
) -> ReferenceImport:
    """Import the reference results of a suite, and create their hardware profiles.

    An existing profile of the team is not changed.
    """
    published = load_reference_suite(suite)
    known = set(member.team.profiles.values_list("slug", flat=True))
    with transaction.atomic():
        for slug, profile in published.profiles.items():
            if slug not in known:
                save_profile(member=member, slug=slug, **profile.model_dump())
        return import_results(
            member=member,
            new=NewImport(
                name=published.source.name,
                format="csv",
                content=(SUITES / suite / "published.csv").read_bytes(),
                origin=published.source.origin,
                suite=suite,
            ),
            progress=progress,
        )
