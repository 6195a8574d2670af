"""Back up the whole database into one file: a dump of one instant and a manifest."""

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from django.db import connection, transaction

from orchestrator.accounts.sealed_columns import keys_in_use
from orchestrator.archives.database.clients import Server, clients_of, our_server, running
from orchestrator.archives.database.manifest import DUMP, MANIFEST, Manifest
from orchestrator.archives.database.state import applied_migrations, rows_by_table
from orchestrator.archives.files import copied, whole_file
from orchestrator.archives.version import pitwall_version
from orchestrator.core.clock import utc_now

#: Called with the number of bytes that are written.
Written = Callable[[int], None]


def back_up(path: Path, *, overwrite: bool = False, written: Written = lambda _: None) -> Manifest:
    """Write a backup while Pitwall runs; the file appears only when it is complete.

    Raise ConflictError if the file exists, or if no pg_dump fits the server.
    """
    server = our_server()
    program = clients_of(server) / "pg_dump"
    with whole_file(path, overwrite=overwrite) as file, zipfile.ZipFile(file, "w") as archive:
        # The counted rows and those that pg_dump reads are of the same instant.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SELECT pg_export_snapshot()")
            (snapshot,) = cursor.fetchone()
            state: dict[str, Any] = {
                "tables": rows_by_table(),
                "migrations": applied_migrations(),
                "sealing_keys": keys_in_use(),
            }
            with archive.open(zipfile.ZipInfo(DUMP), "w", force_zip64=True) as member:
                size, digest = _dump(program, server, snapshot, member, written)
        manifest = Manifest(
            pitwall=pitwall_version(),
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
    with running(program, server, *options, stdout=subprocess.PIPE) as dumping:
        assert dumping.stdout is not None, "it is a pipe"
        return copied(dumping.stdout, out, written)
