"""Import of reference results; a repeated import adds nothing twice."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, Team
from orchestrator.accounts.quotas import add_storage_used, check_storage, load_quotas
from orchestrator.accounts.services import record_audit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.ids import hash_value
from orchestrator.importers.registry import format_named
from orchestrator.importers.rows import Row, limit_rows
from orchestrator.reports.models import ReferenceResult, ReferenceSource
from orchestrator.reports.references import load_source

#: `(done, total)` in rows.
Progress = Callable[[int, int], None]
#: The number of rows between two progress messages.
STEP = 500
MAX_BYTES = 200 * 1024**2
#: The approximate size of a reference result as a row.
BYTES_A_FIGURE = 300
_TABLE = ReferenceResult._meta.db_table
#: `key` identifies a reference result within a source; other columns may be corrected.
_CHANGEABLE = ("position", "profile_id", "unit", "better", "value", "sentinel")
_COLUMNS = (
    "source_id", "key", "suite", "environment", "parameters", "metric", "statistic",
    "measured_at", "commit", *_CHANGEABLE,
)  # fmt: skip

_NAMES = ", ".join(f'"{name}"' for name in _COLUMNS)
_CHANGES = ", ".join(f'"{name}" = EXCLUDED."{name}"' for name in _CHANGEABLE)
_OLD, _NEW = (
    ", ".join(f'{place}."{name}"' for name in _CHANGEABLE) for place in ("stored", "EXCLUDED")
)
_MAKE = (
    f"CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS SELECT {_NAMES} FROM {_TABLE} WITH NO DATA"
)
#: xmax is 0 in a new row.
_TAKE_IN = (
    f"WITH told AS (INSERT INTO {_TABLE} AS stored ({_NAMES}) "
    f"SELECT {_NAMES} FROM incoming ORDER BY position "
    f"ON CONFLICT (source_id, key) DO UPDATE SET {_CHANGES} "
    f"WHERE ({_OLD}) IS DISTINCT FROM ({_NEW}) RETURNING xmax = 0 AS added) "
    "SELECT count(*) FILTER (WHERE added), count(*) FILTER (WHERE NOT added) FROM told"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewImport:
    """A file and additional information.

    `suite`, `environment`, `commit` and `measured_at` are defaults for values that the file omits.
    `unknown` are numbers that mean unknown, in addition to those of the format.
    """

    name: str
    format: str
    content: bytes
    origin: str = ""
    suite: str = ""
    environment: str = ""
    commit: str = ""
    measured_at: datetime | None = None
    unknown: frozenset[float] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceImport:
    """The result of an import of a file: each row was added, changed, or unchanged."""

    source: ReferenceSource
    rows: int
    unknown: int
    added: int
    changed: int

    @property
    def unchanged(self) -> int:
        return self.rows - self.added - self.changed


def import_results(
    *, member: Member, new: NewImport, progress: Progress = lambda done, total: None
) -> ReferenceImport:
    """Read a whole file and store its reference results, all of them or none.

    InvalidRequestError names the position that does not match the format. QuotaExceededError if the
    team's storage quota is too small.
    """
    member.require(Role.MEMBER, to="import reference results")
    name = new.name.strip()
    if not name or len(name) > 100:
        raise InvalidRequestError("name the source, in at most 100 characters", field="source")
    if len(new.content) > MAX_BYTES:
        raise InvalidRequestError(f"a file has at most {MAX_BYTES // 1024**2} MiB", field="file")
    read = format_named(new.format).read(new.content)
    rows = [_complete_row(row, new) for row in limit_rows(read)]
    if not rows:
        problem = "this file has no reference results; check its format"
        raise InvalidRequestError(problem, field="file")
    quotas = load_quotas(member.team)
    check_storage(team=member.team, quotas=quotas, added=len(rows) * BYTES_A_FIGURE)
    with transaction.atomic():
        source, _ = ReferenceSource.objects.update_or_create(
            team=member.team,
            name=name,
            defaults={"origin": new.origin, "format": new.format, "imported_at": utc_now()},
        )
        added, changed = _store(source, rows, progress)
        if quotas.storage_bytes is not None:
            add_storage_used(team=member.team, added=added * BYTES_A_FIGURE)
        record_audit(
            member=member, action="references.imported", subject=f"{name}: {len(rows)} figures"
        )
    unknown = sum(row.value is None for row in rows)
    return ReferenceImport(
        source=source, rows=len(rows), unknown=unknown, added=added, changed=changed
    )


@transaction.atomic
def remove_source(*, member: Member, source_id: UUID) -> None:
    """Remove a source with all its reference results."""
    member.require(Role.MEMBER, to="remove reference results")
    source = load_source(member, source_id)
    record_audit(member=member, action="references.removed", subject=source.name)
    source.delete()


def _complete_row(row: Row, new: NewImport) -> Row:
    if row.value is not None and row.value in new.unknown:
        row = replace(row, value=None, sentinel=f"{row.value:g}")
    row = replace(
        row,
        suite=row.suite or new.suite,
        environment=row.environment or new.environment,
        commit=row.commit or new.commit,
        measured_at=row.measured_at or new.measured_at,
    )
    _check(row)
    return row


def _check(row: Row) -> None:
    for name, text in _list_texts(row):
        longest = getattr(ReferenceResult._meta.get_field(name), "max_length", None)
        if longest is not None and len(text) > longest:
            raise InvalidRequestError(
                f"{name}: expected at most {longest} characters, got {text[:60]!r}…", field=name
            )
        # PostgreSQL cannot store NUL, and UTF-8 has no lone surrogates.
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InvalidRequestError(f"{name}: {text[:60]!r} cannot be stored", field=name)


def _list_texts(row: Row) -> Iterator[tuple[str, str]]:
    for name in ("suite", "environment", "metric", "unit", "statistic", "sentinel", "commit"):
        yield name, getattr(row, name)
    for axis, value in row.parameters.items():
        yield "parameters", f"{axis} {value}"


def _store(source: ReferenceSource, rows: list[Row], progress: Progress) -> tuple[int, int]:
    """Store the rows; return how many were added, and how many changed."""
    # Before the COPY: during it the connection cannot be used for queries.
    profiles = _load_profile_ids(source.team)
    with connection.cursor() as cursor:
        cursor.execute(_MAKE)
        with cursor.copy(f"COPY incoming ({_NAMES}) FROM STDIN") as copy:
            for done, record in enumerate(_build_records(source, rows, profiles), 1):
                copy.write_row(record)
                if done % STEP == 0 or done == len(rows):
                    progress(done, len(rows))
        cursor.execute(_TAKE_IN)
        added, changed = cursor.fetchone()
        cursor.execute("DROP TABLE incoming")
    return added, changed


def _build_records(
    source: ReferenceSource, rows: Iterable[Row], profiles: Mapping[str, int]
) -> Iterator[tuple[object, ...]]:
    seen: Counter[str] = Counter()
    for position, row in enumerate(rows):
        identity = _build_identity(row)
        again = hash_value(identity)[:32]
        seen[again] += 1
        # The same benchmark can occur twice in one entry; the second is a separate result.
        key = again if seen[again] == 1 else hash_value([identity, seen[again]])[:32]
        yield (
            source.pk,
            key,
            row.suite,
            row.environment,
            json.dumps(dict(row.parameters)),
            row.metric,
            row.statistic,
            row.measured_at,
            row.commit,
            position,
            profiles.get(row.environment.lower()),
            row.unit,
            row.better,
            row.value,
            row.sentinel,
        )


def _build_identity(row: Row) -> list[object]:
    moment = row.measured_at.isoformat() if row.measured_at else None
    parameters = dict(row.parameters)
    return [
        row.suite, row.environment, parameters, row.metric, row.statistic, moment, row.commit
    ]  # fmt: skip


def _load_profile_ids(team: Team) -> Mapping[str, int]:
    """Map the team's hardware profiles by their possible names in a file: slug and name."""
    known = list(team.profiles.values_list("pk", "slug", "name"))
    by_name = {name.lower(): pk for pk, _, name in known}
    return {**by_name, **{slug: pk for pk, slug, _ in known}}
