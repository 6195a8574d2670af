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

    def get_id(self, kind: str, archive_id: Any) -> Any:
        """Return the id of an earlier row.

        Raise KeyError if there is none, ValueError for a malformed id.
        """
        if kind in _COUNTED or kind == "hosts":
            return self._here[kind][archive_id]
        if parse_uuid(archive_id) not in self._own.get(kind, ()):
            # It may be another team's row, whose id the uploader knows from a link.
            raise KeyError(archive_id)
        return self._uuid(archive_id)

    def register_id(self, kind: Kind, archive_id: Any) -> Any:
        """Return the id of a row that is about to be written."""
        if kind.own_key:
            self._own.setdefault(kind.name, set()).add(parse_uuid(archive_id))
            return self.get_id(kind.name, archive_id)
        mine = self._here.setdefault(kind.name, {})
        if type(archive_id) is not int or archive_id in mine:
            raise ValueError(f"{archive_id!r} is not a number, or occurs twice")
        number = next(self._fresh.setdefault(kind.name, _iterate_numbers(kind)))
        if kind.name in _COUNTED:
            mine[archive_id] = number
        return number

    def metric(self, key: Any) -> int:
        if not isinstance(key, str) or not 0 < len(key) <= _KEY:
            raise ValueError(f"{key!r} is not a metric")
        if key not in self._metrics:
            self._metrics |= store_metrics(self._team.pk, [key])
        return self._metrics[key]

    def replace_ids(self, document: Any) -> Any:
        """Return a document with its ids of runs (texts that are UUIDs) replaced."""
        if isinstance(document, dict):
            return {key: self.replace_ids(value) for key, value in document.items()}
        if isinstance(document, list):
            return [self.replace_ids(value) for value in document]
        try:
            if not isinstance(document, str):
                return document
            is_own = parse_uuid(document) in self._own.get("runs", ())
        except ValueError:
            return document
        # A run that is not in the archive gets an id that no row has.
        return str(self._uuid(document) if is_own else _derive_id(self._place, document))

    def note_job(self, archive_id: Any) -> None:
        """Map the blocks of a job, which are derived from its id."""
        old, new = parse_uuid(archive_id), self._uuid(archive_id)
        if old != new:
            self._blocks |= {
                hash_block(old, n): hash_block(new, n) for n in range(1, MAX_ROUNDS + 1)
            }

    def block(self, number: int) -> int:
        return self._blocks.get(number, number)

    def is_known(self, kind: Kind, archive_id: Any, row: Any) -> bool:
        """Return whether the team has this row, and store its id."""
        if row is None:
            return False
        self._here.setdefault(kind.name, {})[archive_id] = row.pk
        self._known.add((kind.name, archive_id))
        return True

    def was_known(self, kind: str, archive_id: Any) -> bool:
        return (kind, archive_id) in self._known

    def host(self, archive_id: Any) -> Host | None:
        """Return the team's host, also one of an earlier import.

        For a new host return None, and map its id.
        """
        for key in (parse_uuid(archive_id), _derive_id(f"{self._team.pk}", archive_id)):
            host = Host.objects.filter(pk=key).first()
            if host is not None and host.team_id == self._team.pk:
                return host
            if host is None:
                self._here.setdefault("hosts", {})[archive_id] = key
                return None
        raise ValueError(f"the host {archive_id} is another team's")

    def snapshot(self, data: Mapping[str, Any]) -> HostSnapshot | None:
        facts = {name: data[name] for name in ("taken_at", "fingerprint")}
        return HostSnapshot.objects.filter(host=self.get_id("hosts", data["host"]), **facts).first()

    def knows_change(self, data: Mapping[str, Any]) -> bool:
        snapshot = self.get_id("snapshots", data["snapshot"])
        return HostChange.objects.filter(snapshot=snapshot).exists()

    def _uuid(self, archive_id: Any) -> UUID:
        key = parse_uuid(archive_id)
        return _derive_id(self._place, archive_id) if self._copies else key


def _derive_id(place: str, archive_id: Any) -> UUID:
    """Return an id derived from its arguments, the same in a second import."""
    return UUID(bytes=hashlib.sha256(f"{place}/{archive_id}".encode()).digest()[:16])


def _iterate_numbers(kind: Kind) -> Iterator[int]:
    """Yield unused numbers of a table, fetched in batches."""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
                [kind.model._meta.db_table, _AT_ONCE],
            )
            numbers = [number for (number,) in cursor.fetchall()]
        yield from numbers
