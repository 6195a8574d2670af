"""Databases in addition to the one of the tests."""

import contextlib
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg import sql

from orchestrator.config import variables
from orchestrator.core.ids import new_hex
from tests.support.engine import own_database_url
from tests.support.waiting import wait_until

DROP_S = 30.0
#: They have what migrations filled in, and no test adds rows.
KEPT_TABLES = ("auth_permission", "django_content_type", "django_migrations")
#: In any order, because all foreign keys are deferred. Few tables have rows after a test.
_EMPTY = """
    DO $$
    DECLARE
        name text;
        has_rows boolean;
    BEGIN
        FOR name IN
            SELECT quote_ident(relname) FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND NOT relname = ANY({})
        LOOP
            EXECUTE 'SELECT EXISTS (SELECT FROM ' || name || ')' INTO has_rows;
            IF has_rows AND name = 'accounts_auditentry' THEN
                TRUNCATE accounts_auditentry;  -- A trigger forbids DELETE.
            ELSIF has_rows THEN
                EXECUTE 'DELETE FROM ' || name;
            END IF;
        END LOOP;
    END $$
"""


def empty_tables() -> None:
    """Delete all rows that tests made, also committed ones.

    Django's `flush` truncates all tables, which creates a file for each table and index, and then
    creates all permissions again.
    """
    kept = sql.Literal(list(KEPT_TABLES))
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(_EMPTY).format(kept))


@contextlib.contextmanager
def empty_database() -> Iterator[str]:
    """Yield the URL of an empty database on our server; it is dropped after the block."""
    name = f"test_{new_hex()[:12]}"
    ours = own_database_url()
    quoted = sql.Identifier(name)
    with psycopg.connect(ours, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(quoted))
        try:
            yield ours.replace(f"/{quote(connection.settings_dict['NAME'])}?", f"/{name}?")
        finally:
            _drop(server, quoted)


def _drop(server: psycopg.Connection, quoted: sql.Identifier) -> None:
    """Drop a database and end its sessions. FORCE is refused while autovacuum works in it."""

    def is_dropped() -> bool:
        try:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(quoted))
        except psycopg.errors.InsufficientPrivilege:
            return False
        return True

    wait_until(is_dropped, "autovacuum works in the database all the time", timeout_s=DROP_S)


@contextlib.contextmanager
def as_our_database(url: str) -> Iterator[None]:
    """Connect this process to the database for the block."""
    usual = connections["default"]
    settings = {**usual.settings_dict, **variables.parse_database_url(url)}
    connections["default"] = DatabaseWrapper(settings, "default")
    try:
        yield
    finally:
        connections["default"].close()
        connections["default"] = usual
