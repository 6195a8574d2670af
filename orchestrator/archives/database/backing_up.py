"""Back up the whole database into one file: a dump of one instant and a manifest."""

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from django.db import connection, transaction

from orchestrator.accounts.sealed_columns import load_key_ids
from orchestrator.archives.database.clients import Server, find_folder, read_server, run_program
from orchestrator.archives.database.manifest import DUMP, MANIFEST, Manifest
from orchestrator.archives.database.state import count_rows_by_table, load_applied_migrations
from orchestrator.archives.files import copy_stream, write_whole_file
from orchestrator.archives.version import read_pitwall_version
from orchestrator.core.clock import utc_now

#: Called with the number of bytes that are written.
Written = Callable[[int], None]


def back_up(path: Path, *, overwrite: bool = False, written: Written = lambda _: None) -> Manifest:
    """Write a backup while Pitwall runs; the file appears only when it is complete.

    Raise ConflictError if the file exists, or if no pg_dump fits the server.
    """
    server = read_server()
    program = find_folder(server) / "pg_dump"
    with write_whole_file(path, overwrite=overwrite) as file, zipfile.ZipFile(file, "w") as archive:
        # The counted rows and those that pg_dump reads are of the same instant.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SELECT pg_export_snapshot()")
            (snapshot,) = cursor.fetchone()
            state: dict[str, Any] = {
                "tables": count_rows_by_table(),
                "migrations": load_applied_migrations(),
                "sealing_keys": load_key_ids(),
            }
            with archive.open(zipfile.ZipInfo(DUMP), "w", force_zip64=True) as member:
                size, digest = _dump(program, server, snapshot, member, written)
        manifest = Manifest(
            pitwall=read_pitwall_version(),
            postgresql=server.version,
            made_at=utc_now().isoformat(timespec="seconds"),
            dump_bytes=size,
            dump_sha256=digest,
            **state,
        )
        archive.writestr(MANIFEST, manifest.text())
    return manifest


def _dump(
    program: Path, server: Server, snapshot: str, out: IO[bytes], written: Written
) -> tuple[int, str]:
    """Copy the output of pg_dump. Return its size and SHA-256."""
    options = ("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}")
    with run_program(program, server, *options, stdout=subprocess.PIPE) as dumping:
        assert dumping.stdout is not None, "it is a pipe"
        return copy_stream(dumping.stdout, out, written)
