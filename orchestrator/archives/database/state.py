"""The content of a database: its tables with their rows, its migrations, its sessions."""

from collections.abc import Iterable

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

_TABLES = """
SELECT schemaname, tablename FROM pg_tables
WHERE schemaname NOT LIKE 'pg\\_%' AND schemaname <> 'information_schema' ORDER BY 1, 2
"""
_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def load_tables() -> list[tuple[str, str]]:
    """Return schema and name of each table that is not PostgreSQL's own."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        return [(schema, name) for schema, name in cursor.fetchall()]


def count_rows_by_table() -> dict[str, int]:
    with connection.cursor() as cursor:
        return {
            f"{schema}.{name}": _count_rows(cursor, schema, name) for schema, name in load_tables()
        }


def _count_rows(cursor: object, schema: str, name: str) -> int:
    counting = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, name))
    cursor.execute(counting)  # type: ignore[attr-defined]
    return int(cursor.fetchone()[0])  # type: ignore[attr-defined]


def count_other_sessions() -> int:
    """Return the number of other sessions of the same database."""
    with connection.cursor() as cursor:
        cursor.execute(_OTHERS)
        return int(cursor.fetchone()[0])


def load_applied_migrations() -> tuple[str, ...]:
    applied = MigrationRecorder(connection).applied_migrations()
    return tuple(sorted(f"{app}.{name}" for app, name in applied))


def find_unknown_migrations(applied: Iterable[str]) -> list[str]:
    """Return the migrations that this code does not have: the database is of a newer Pitwall."""
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    return sorted(set(applied) - known)


def find_pending_migrations() -> list[str]:
    """Return the migrations that `migrate` has yet to apply, in order."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
