"""Ids of an imported project: its own if they are free, otherwise new ones."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from django.db import connection

from orchestrator.accounts.models import Team
from orchestrator.archives.projects.kinds import Kind
from orchestrator.archives.projects.rows import parse_uuid
from orchestrator.benchmarks.models import Definition
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.fleet.models import Host, HostChange, HostSnapshot
from orchestrator.measurements.comparability import hash_block
from orchestrator.measurements.metrics import store_metrics

_KEY = 60
_AT_ONCE = 500
#: Rows that others refer to by a number.
_COUNTED = frozenset(
    {"profiles", "snapshots", "commits", "benchmarks", "cases", "series", "variants"}
)


class NewIds:
    """Maps each id of the archive to its id here.

    UUIDs stay, unless the definitions exist here already. Then the project is a copy, and all its
    UUIDs are derived from the team and the project's name. Hosts belong to the team and are mapped
    separately.
    """

    def __init__(self, *, team: Team, slug: str, definitions: Iterable[Any]) -> None:
        self._team, self._place = team, f"{team.pk}/{slug}"
        here = Definition.objects.filter(pk__in=[parse_uuid(each) for each in definitions])
        self._copies = here.exists()
        self._here: dict[str, dict[Any, Any]] = {}
        self._known: set[tuple[str, Any]] = set()
        self._own: dict[str, set[UUID]] = {}
        self._fresh: dict[str, Iterator[int]] = {}
        self._blocks: dict[int, int] = {}
        self._metrics: dict[str, int] = {}

    def get_id(self, kind: str, told: Any) -> Any:
        """Return the id of an earlier row.

        Raise KeyError if there is none, ValueError for a malformed id.
        """
        if kind in _COUNTED or kind == "hosts":
            return self._here[kind][told]
        if parse_uuid(told) not in self._own.get(kind, ()):
            # It may be another team's row, whose id the uploader knows from a link.
            raise KeyError(told)
        return self._uuid(told)

    def register_id(self, kind: Kind, told: Any) -> Any:
        """Return the id of a row that is about to be written."""
        if kind.own_key:
            self._own.setdefault(kind.name, set()).add(parse_uuid(told))
            return self.get_id(kind.name, told)
        mine = self._here.setdefault(kind.name, {})
        if type(told) is not int or told in mine:
            raise ValueError(f"{told!r} is not a number, or occurs twice")
        number = next(self._fresh.setdefault(kind.name, _iterate_numbers(kind)))
        if kind.name in _COUNTED:
            mine[told] = number
        return number

    def metric(self, key: Any) -> int:
        if not isinstance(key, str) or not 0 < len(key) <= _KEY:
            raise ValueError(f"{key!r} is not a metric")
        if key not in self._metrics:
            self._metrics |= store_metrics(self._team.pk, [key])
        return self._metrics[key]

    def replace_ids(self, told: Any) -> Any:
        """Return a document with its ids of runs (texts that are UUIDs) replaced."""
        if isinstance(told, dict):
            return {key: self.replace_ids(value) for key, value in told.items()}
        if isinstance(told, list):
            return [self.replace_ids(value) for value in told]
        try:
            if not isinstance(told, str):
                return told
            is_own = parse_uuid(told) in self._own.get("runs", ())
        except ValueError:
            return told
        # A run that is not in the archive gets an id that no row has.
        return str(self._uuid(told) if is_own else _derive_id(self._place, told))

    def note_job(self, told: Any) -> None:
        """Map the blocks of a job, which are derived from its id."""
        old, new = parse_uuid(told), self._uuid(told)
        if old != new:
            self._blocks |= {
                hash_block(old, n): hash_block(new, n) for n in range(1, MAX_ROUNDS + 1)
            }

    def block(self, told: int) -> int:
        return self._blocks.get(told, told)

    def is_known(self, kind: Kind, told: Any, row: Any) -> bool:
        """Return whether the team has this row, and store its id."""
        if row is None:
            return False
        self._here.setdefault(kind.name, {})[told] = row.pk
        self._known.add((kind.name, told))
        return True

    def was_known(self, kind: str, told: Any) -> bool:
        return (kind, told) in self._known

    def host(self, told: Any) -> Host | None:
        """Return the team's host, also one of an earlier import.

        For a new host return None, and map its id.
        """
        for key in (parse_uuid(told), _derive_id(f"{self._team.pk}", told)):
            found = Host.objects.filter(pk=key).first()
            if found is not None and found.team_id == self._team.pk:
                return found
            if found is None:
                self._here.setdefault("hosts", {})[told] = key
                return None
        raise ValueError(f"the host {told} is another team's")

    def snapshot(self, told: Mapping[str, Any]) -> HostSnapshot | None:
        facts = {name: told[name] for name in ("taken_at", "fingerprint")}
        return HostSnapshot.objects.filter(host=self.get_id("hosts", told["host"]), **facts).first()

    def knows_change(self, told: Mapping[str, Any]) -> bool:
        snapshot = self.get_id("snapshots", told["snapshot"])
        return HostChange.objects.filter(snapshot=snapshot).exists()

    def _uuid(self, told: Any) -> UUID:
        key = parse_uuid(told)
        return _derive_id(self._place, told) if self._copies else key


def _derive_id(place: str, told: Any) -> UUID:
    """Return an id derived from its arguments, the same in a second import."""
    return UUID(bytes=hashlib.sha256(f"{place}/{told}".encode()).digest()[:16])


def _iterate_numbers(kind: Kind) -> Iterator[int]:
    """Yield unused numbers of a table, fetched in batches."""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
                [kind.model._meta.db_table, _AT_ONCE],
            )
            found = [number for (number,) in cursor.fetchall()]
        yield from found
