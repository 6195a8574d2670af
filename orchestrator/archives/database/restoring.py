"""Restore a backup in one transaction, which is checked before it commits."""

import contextlib
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.db import connection
from psycopg import sql

from orchestrator.accounts.sealed_columns import list_sealed_columns, rotate_seals
from orchestrator.archives.database import state
from orchestrator.archives.database.clients import Server, find_folder, read_server, run_program
from orchestrator.archives.database.manifest import DUMP, Manifest, read_manifest
from orchestrator.archives.errors import ProgramFailedError
from orchestrator.archives.files import copy_stream
from orchestrator.core.errors import ConflictError, InvalidRequestError

Read = Callable[[int, int], None]

#: Drops everything in a schema except what belongs to extensions. A newer Pitwall may have had
#: tables that this one does not know.
_EMPTY_IT = """
DO $$ DECLARE each record; BEGIN
  FOR each IN SELECT schemaname, tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
    EXECUTE format('DROP TABLE IF EXISTS %I.%I CASCADE', each.schemaname, each.tablename);
  END LOOP;
  FOR each IN SELECT p.oid::regprocedure AS named FROM pg_proc p
      WHERE pronamespace = current_schema()::regnamespace AND NOT EXISTS (
        SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') LOOP
    EXECUTE format('DROP ROUTINE %s CASCADE', each.named);
  END LOOP;
END $$;
"""

#: Revokes whatever grants access: a backup also contains tokens that were revoked after it was
#: made.
_REVOKE = """
UPDATE public.accounts_apitoken SET revoked_at = now() WHERE revoked_at IS NULL;
UPDATE public.accounts_invitation SET withdrawn_at = now()
    WHERE used_at IS NULL AND withdrawn_at IS NULL;
UPDATE public.benchmarks_sharelink SET revoked_at = now() WHERE revoked_at IS NULL;
DELETE FROM public.django_session;
DELETE FROM public.accounts_shared_cache;
"""

_CHECK = sql.SQL(
    "DO $check$ BEGIN IF (SELECT count(*) FROM {table}) <> {rows} THEN "
    "RAISE '% does not have the % rows of the backup', {name}, {rows}; END IF; END $check$;\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """`missing`: migrations that are still to be applied.

    `broken`: columns with secrets that no key opens, one line per column. It is None if that is
    known only after `migrate`.
    """

    manifest: Manifest
    missing: tuple[str, ...]
    broken: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Backup:
    """A file with its manifest and the callback for progress."""

    path: Path
    manifest: Manifest
    read: Read

    def copy_dump(self, out: IO[bytes] | None) -> None:
        """Copy the dump. Raise InvalidRequestError after the last byte if its SHA-256 differs."""
        all_bytes = self.manifest.dump_bytes
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(DUMP) as dump:
                _, digest = copy_stream(dump, out, lambda done: self.read(done, all_bytes))
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise InvalidRequestError(f"{self.path} is damaged: {error}") from error
        if digest != self.manifest.dump_sha256:
            raise InvalidRequestError(
                f"{self.path} is damaged: the SHA-256 of {DUMP} does not match"
            )


def check(path: Path, *, read: Read = lambda _done, _all: None) -> Manifest:
    """Return the manifest of a complete backup. InvalidRequestError says what is wrong with it."""
    manifest = read_manifest(path)
    _Backup(path=path, manifest=manifest, read=read).copy_dump(None)
    return manifest


def restore(
    path: Path,
    *,
    replace: bool = False,
    revoke_tokens: bool = False,
    read: Read = lambda _done, _all: None,
) -> RestoreResult:
    """Restore into the database of the settings. `replace`: drop its present content.

    `revoke_tokens`: API tokens, sessions, open invitations and shared links of the backup become
    invalid.

    Raise InvalidRequestError if the file cannot be restored here, ConflictError if the database is
    in use or not empty. Nothing has changed then.
    """
    manifest = read_manifest(path)
    server = read_server()
    _refuse_unfit(path, manifest, server)
    programs = find_folder(server)
    _refuse_occupied(replace=replace)
    # Django's session must not hold locks that the transaction needs.
    connection.close()
    backup = _Backup(path=path, manifest=manifest, read=read)
    before, after = _EMPTY_IT if replace else "", _REVOKE if revoke_tokens else ""
    _restore_into(backup, programs, server, before=before, after=after)
    missing = state.find_pending_migrations()
    return RestoreResult(
        manifest=manifest,
        missing=tuple(missing),
        broken=None if missing else tuple(_list_broken_seals()),
    )


def _refuse_unfit(path: Path, manifest: Manifest, server: Server) -> None:
    if unknown := state.find_unknown_migrations(manifest.migrations):
        raise InvalidRequestError(
            f"{path} was made by a newer Pitwall ({manifest.pitwall}): this one does not know "
            f"{', '.join(unknown[:3])}{' and others' if len(unknown) > 3 else ''}; restore it with "
            "that Pitwall, or a newer one"
        )
    if int(manifest.postgresql.partition(".")[0]) > server.major:
        raise InvalidRequestError(
            f"{path} is from PostgreSQL {manifest.postgresql}, and this server is "
            f"{server.version}: an older server cannot restore it; use PostgreSQL "
            f"{manifest.postgresql.partition('.')[0]} or newer"
        )


def _refuse_occupied(*, replace: bool) -> None:
    name = connection.settings_dict["NAME"]
    if state.load_tables() and not replace:
        raise ConflictError(
            f"the database {name} is not empty; name an empty one in DATABASE_URL, or use "
            "--replace, which deletes its present contents"
        )
    if others := state.count_other_sessions():
        raise ConflictError(
            f"{others} other sessions use the database {name}; stop web, workers and beat first"
        )


def _restore_into(
    backup: _Backup, programs: Path, server: Server, *, before: str, after: str
) -> None:
    """pg_restore writes the script, and psql executes it. Only a complete script is committed."""
    options = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1")
    status = -1
    with tempfile.TemporaryFile() as restore_output:
        with run_program(
            programs / "psql", server, *options, stdin=subprocess.PIPE
        ) as carrying_out:
            script = carrying_out.stdin
            assert script is not None, "it is a pipe"
            # If psql has ended, its own messages say why.
            with contextlib.suppress(BrokenPipeError), contextlib.closing(script):
                script.write(f"BEGIN;\n{before}".encode())
                script.flush()
                status = _write_script(backup, programs / "pg_restore", script, restore_output)
                if status == 0:
                    script.write(f"{_build_check_sql(backup.manifest)}{after}COMMIT;\n".encode())
        if status != 0:
            raise ProgramFailedError("pg_restore", status, restore_output)


def _write_script(backup: _Backup, program: Path, script: IO[bytes], stderr: IO[bytes]) -> int:
    """Return the exit status of pg_restore."""
    argv = [str(program), "--no-owner", "--no-privileges", "--file=-"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=script, stderr=stderr) as writing:
        assert writing.stdin is not None, "it is a pipe"
        with contextlib.suppress(BrokenPipeError), contextlib.closing(writing.stdin):
            backup.copy_dump(writing.stdin)
    return writing.returncode


def _build_check_sql(manifest: Manifest) -> str:
    """Return SQL that fails if a table does not have the number of dumped rows."""
    return "".join(
        _CHECK.format(table=sql.Identifier(*table.split(".", 1)), rows=rows, name=table).as_string(
            None
        )
        for table, rows in manifest.tables.items()
    )


def _list_broken_seals() -> list[str]:
    """Return one line per column with values that cannot be opened."""
    # Each batch yields the same object, which contains all that was found so far.
    reports = [
        each
        for column in list_sealed_columns()
        for each in [*rotate_seals(column, write=False)][-1:]
    ]
    return [
        f"{each.column}: {len(each.broken)} of {each.rows} rows, such as {each.broken[0]}"
        for each in reports
        if each.broken
    ]
