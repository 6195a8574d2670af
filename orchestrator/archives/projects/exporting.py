"""Export a project into one file; docs/backup.md describes its form."""

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from django.db import connection, transaction
from django.db.models import BinaryField, ForeignKey

from orchestrator.archives.files import write_whole_file
from orchestrator.archives.projects.form import MANIFEST, Manifest, Member
from orchestrator.archives.projects.kinds import KINDS, OF_PROJECT, Kind, Scope
from orchestrator.archives.version import read_pitwall_version
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.remotes import strip_secret
from orchestrator.core.clock import utc_now
from orchestrator.results.models import Metric
from orchestrator.runs.models import Run

#: Called with the number of rows written so far, and with the number of all rows.
Written = Callable[[int, int], None]
AT_ONCE = 1000
_PART = 1 << 20


def export_project(
    project: Project,
    path: Path,
    *,
    overwrite: bool = False,
    written: Written = lambda _done, _all: None,
) -> Manifest:
    """Export the project as it is at one instant, without secrets.

    The file appears only when complete.
    """
    with (
        write_whole_file(path, overwrite=overwrite) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            writer = _Writer(archive, Scope(project=project), written, path.parent)
            for kind in KINDS:
                writer.write(kind)
        manifest = Manifest(
            pitwall=read_pitwall_version(),
            made_at=utc_now().isoformat(timespec="seconds"),
            project=_export_project(project),
            members=writer.members,
            excluded_runs=len(writer.scope.unended),
        )
        archive.writestr(MANIFEST, manifest.text())
    return manifest


def _export_project(project: Project) -> dict[str, Any]:
    values = {name: getattr(project, name) for name in OF_PROJECT}
    # A worker moves secrets out of addresses, but only if there is a sealing key.
    return {**values, "repository_url": strip_secret(project.repository_url)}


class _Writer:
    """Writes the rows, kind by kind; `members` are those that are written."""

    def __init__(
        self, archive: zipfile.ZipFile, scope: Scope, written: Written, folder: Path
    ) -> None:
        self.scope = scope
        self.members: dict[str, Member] = {}
        self._archive, self._written, self._folder = archive, written, folder
        self._metrics = dict(Metric.objects.values_list("pk", "key"))
        self._total = sum(kind.chosen(scope).count() for kind in KINDS)
        self._done = 0

    def write(self, kind: Kind) -> None:
        # Use a file next to the target: the folder of temporary files may be a small memory disk.
        with tempfile.TemporaryFile(dir=self._folder) as raw:
            lines, values = _CountingFile(), _CountingFile()
            with self._archive.open(f"{kind.name}.jsonl", "w", force_zip64=True) as out:
                for row in kind.chosen(self.scope).iterator(chunk_size=AT_ONCE):
                    record, binary = self._export_row(kind, row)
                    lines.write(out, f"{json.dumps(record, default=str)}\n".encode())
                    for value in binary:
                        values.write(raw, value)
                    self._done += 1
                    self._written(self._done, self._total)
            self.members[f"{kind.name}.jsonl"] = lines.member
            if any(isinstance(each, BinaryField) for each in kind.fields):
                self._copy(f"{kind.name}.bin", raw)
                self.members[f"{kind.name}.bin"] = values.member

    def _export_row(self, kind: Kind, row: Any) -> tuple[dict[str, Any], list[bytes]]:
        """Return a row as in its line, and its binary values; the line has only their size."""
        data: dict[str, Any] = {}
        binary: list[bytes] = []
        for each in kind.fields:
            value = getattr(row, each.attname)
            if isinstance(each, BinaryField) and value is not None:
                binary.append(bytes(value))
                value = len(binary[-1])
            elif isinstance(each, ForeignKey) and each.related_model is Metric:
                value = self._metrics[value]
            elif isinstance(each, ForeignKey) and each.related_model is Run:
                value = None if value in self.scope.unended else value
            elif (kind.name, each.name) == ("readings", "metrics"):
                value = [self._metrics[number] for number in value]
            data[each.name] = value.isoformat() if hasattr(value, "isoformat") else value
        if kind.name == "change_points" and data["run"] is None and data["state"] == "confirming":
            data["state"] = "open"
        return data, binary

    def _copy(self, name: str, raw: IO[bytes]) -> None:
        raw.seek(0)
        with self._archive.open(name, "w", force_zip64=True) as out:
            while part := raw.read(_PART):
                out.write(part)


class _CountingFile:
    """Counts and hashes the bytes that pass through it."""

    def __init__(self) -> None:
        self._rows, self._bytes, self._digest = 0, 0, hashlib.sha256()

    def write(self, out: IO[bytes], content: bytes) -> None:
        out.write(content)
        self._rows += 1
        self._bytes += len(content)
        self._digest.update(content)

    @property
    def member(self) -> Member:
        return Member(rows=self._rows, bytes=self._bytes, sha256=self._digest.hexdigest())
