"""Import a file of `export_project` into a team, in one transaction."""

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, transaction
from psycopg import sql

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import AuditEntry, Role
from orchestrator.accounts.services import record_audit
from orchestrator.archives.projects.form import MANIFEST, MOST_MANIFEST, Manifest
from orchestrator.archives.projects.form import read_manifest as read_form
from orchestrator.archives.projects.kinds import BY_NAME, KINDS, Kind
from orchestrator.archives.projects.members import MemberBytes
from orchestrator.archives.projects.new_ids import NewIds
from orchestrator.archives.projects.rows import Converter, parse_row
from orchestrator.benchmarks.models import Definition, Project
from orchestrator.benchmarks.selectors import parse_stored
from orchestrator.core.errors import ConflictError, InvalidRequestError, PitwallError
from orchestrator.core.ids import hash_value
from orchestrator.fleet.models import HardwareProfile, Host
from orchestrator.reports.models import ReferenceSource, SavedReport
from orchestrator.runs.models import Job

Read = Callable[[int, int], None]
AT_ONCE = 1000
ACTION = "project.imported"
#: Errors of zipfile for a file that is no zip, truncated, altered, encrypted or packed in another
#: way.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """`rows` were added; none if the same file was imported before."""

    project: Project
    manifest: Manifest
    rows: int


def import_project(
    *, member: Member, path: Path, slug: str = "", read: Read = lambda _done, _all: None
) -> ImportSummary:
    """Create the project in the member's team, as `slug` if that is given.

    Raise ConflictError if the team has another project of that name. Raise InvalidRequestError, and
    change nothing, if the file is damaged or has another form.
    """
    member.require(Role.MAINTAINER, to="import a project")
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _read_manifest(archive)
            return _Import(member, archive, manifest, slug, read).run()
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror}") from error
    except _DAMAGED as error:
        raise InvalidRequestError(
            f"{path} is damaged, or not an exported project: {error}"
        ) from error
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{path}: {error}") from error


def _read_manifest(archive: zipfile.ZipFile) -> Manifest:
    try:
        with archive.open(MANIFEST) as member:
            return read_form(member.read(MOST_MANIFEST), archive.namelist())
    except KeyError as error:
        raise InvalidRequestError(
            f"there is no {MANIFEST}: this is not an exported project"
        ) from error


class _Import:
    """The state of one import."""

    def __init__(
        self, member: Member, archive: zipfile.ZipFile, manifest: Manifest, slug: str, read: Read
    ) -> None:
        self._member, self._archive, self._manifest, self._read = member, archive, manifest, read
        self._slug = slug or str(manifest.project["slug"])
        self._done = self._added = 0

    def run(self) -> ImportSummary:
        team = self._member.team
        with transaction.atomic():
            # Of two concurrent imports into a team, the second waits and then finds what the first
            # created.
            type(team).objects.select_for_update().get(pk=team.pk)
            known = Project.objects.filter(team=team, slug=self._slug).first()
            if known is not None:
                return self._load_earlier_import(known)
            self._project = self._new_project()
            ids = [record["id"] for record in self._lines(BY_NAME["definitions"])]
            self._ids = NewIds(team=team, slug=self._slug, definitions=ids)
            for kind in KINDS:
                self._take(kind)
            self._finish_import()
            record_audit(member=self._member, action=ACTION, subject=self._subject)
        return ImportSummary(project=self._project, manifest=self._manifest, rows=self._added)

    @property
    def _subject(self) -> str:
        return f"{self._slug} {self._manifest.digest}"

    def _load_earlier_import(self, project: Project) -> ImportSummary:
        before = AuditEntry.objects.filter(
            team=self._member.team, action=ACTION, subject=self._subject
        )
        if not before.exists():
            raise ConflictError(
                f"the team already has a project {self._slug}, which was not imported from this "
                "file; choose another name with --as"
            )
        return ImportSummary(project=project, manifest=self._manifest, rows=0)

    def _new_project(self) -> Project:
        values = {**self._manifest.project, "slug": self._slug}
        project = Project(team=self._member.team, **values)
        try:
            project.full_clean(exclude=["branches", "team"], validate_unique=False)
        except (ValidationError, TypeError, ValueError) as error:
            raise InvalidRequestError(f"its project cannot be created: {error}") from error
        project.save()
        return project

    def _take(self, kind: Kind) -> None:
        convert = Converter(kind, self._ids, self._own(kind))
        name = f"{kind.name}.bin"
        with MemberBytes.open_member(self._archive, self._manifest, name) as binary:
            batch: list[dict[str, Any]] = []
            for number, record in enumerate(self._lines(kind), start=1):
                self._read(self._done, self._manifest.rows)
                self._done += 1
                try:
                    row = self._import_row(kind, convert, record, binary)
                except (InvalidRequestError, KeyError, ValueError, ValidationError) as error:
                    raise InvalidRequestError(
                        f"{kind.name}.jsonl, line {number}: {error}"
                    ) from error
                if row is not None:
                    batch.append(row)
                if len(batch) >= AT_ONCE:
                    self._write(kind, convert, batch)
                    batch = []
            self._write(kind, convert, batch)

    def _lines(self, kind: Kind) -> Iterator[dict[str, Any]]:
        """Yield the parsed lines of a member. At the end, check it against the manifest."""
        name = f"{kind.name}.jsonl"
        with MemberBytes.open_member(self._archive, self._manifest, name) as source:
            for number in range(self._manifest.members[name].rows):
                line = source.read_line()
                try:
                    yield parse_row(kind, line)
                except InvalidRequestError as error:
                    raise InvalidRequestError(f"{name}, line {number + 1}: {error}") from error

    def _import_row(
        self, kind: Kind, convert: Converter, record: dict[str, Any], binary: MemberBytes
    ) -> dict[str, Any] | None:
        """Return the values of a new row; None if the team has the row already."""
        if self._is_there(kind, record):
            return None
        if kind.model is Host:
            record = {**record, "name": self._free_name(Host, "name", record["name"])}
        if kind.model is SavedReport:
            record = self._report(record)
        if kind.model is Job:
            self._ids.note_job(record["id"])
        return convert.row(record, binary.take)

    def _is_there(self, kind: Kind, record: dict[str, Any]) -> bool:
        """Return whether the row exists: hosts and reference results belong to the team."""
        team = self._member.team
        if kind.name == "profiles":
            profile = HardwareProfile.objects.filter(team=team, slug=record["slug"]).first()
            return self._ids.is_known(kind, record["id"], profile)
        if kind.name == "hosts":
            return self._ids.is_known(kind, record["id"], self._ids.host(record["id"]))
        if kind.name == "snapshots":
            return self._ids.is_known(kind, record["id"], self._ids.snapshot(record))
        if kind.name == "host_changes":
            return self._ids.knows_change(record)
        if kind.name == "sources":
            source = ReferenceSource.objects.filter(team=team, name=record["name"]).first()
            return self._ids.is_known(kind, record["id"], source)
        return kind.name == "figures" and self._ids.was_known("sources", record["source"])

    def _free_name(self, model: Any, field: str, name: str) -> str:
        """Return the name, with a number appended if the team has another object of this name."""
        taken = set(
            model.objects.filter(team=self._member.team, **{f"{field}__startswith": name})
            .values_list(field, flat=True)
        )  # fmt: skip
        choices = [name, *(f"{name[:50]}-{number}" for number in range(2, len(taken) + 3))]
        return next(each for each in choices if each not in taken)

    def _report(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a report with the new project name, which is part of its benchmark's name."""
        old = re.escape(str(self._manifest.project["slug"]))
        source = re.sub(
            rf"^(benchmark:\s*[\"']?){old}/", rf"\g<1>{self._slug}/", record["source"], flags=re.M
        )
        slug = self._free_name(SavedReport, "slug", record["slug"])
        return {**record, "source": source, "slug": slug}

    def _own(self, kind: Kind) -> dict[str, Any]:
        names = {each.name for each in kind.model._meta.concrete_fields}
        own = {"team": self._member.team.pk, "project": self._project.pk}
        return {name: value for name, value in own.items() if name in names}

    def _write(self, kind: Kind, convert: Converter, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        table = sql.Identifier(kind.model._meta.db_table)
        columns = sql.SQL(", ").join(map(sql.Identifier, convert.columns))
        copying = sql.SQL("COPY {} ({}) FROM STDIN").format(table, columns)
        try:
            with connection.cursor() as cursor, cursor.cursor.copy(copying) as copy:
                for row in rows:
                    copy.write_row(convert.packed(row))
        except (DatabaseError, psycopg.Error, TypeError, ValueError) as error:
            raise InvalidRequestError(f"{kind.name}.jsonl: {error}") from error
        self._added += len(rows)

    def _finish_import(self) -> None:
        """Check the whole: every link has a target, and definitions can be read."""
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except DatabaseError as error:
            raise InvalidRequestError(f"a link has no target: {error}") from error
        for definition in Definition.objects.filter(benchmark__project=self._project).iterator():
            try:
                parse_stored(definition)
            except (PitwallError, ValueError) as error:
                raise InvalidRequestError(f"{definition} cannot be read: {error}") from error
            if definition.digest != hash_value(definition.spec):
                raise InvalidRequestError(f"{definition}: its digest is of another specification")
