"""Checks of the database, Redis, the other processes and the mail server."""

import time
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.mail import get_connection
from django.db import DatabaseError, connection
from redis import Redis, RedisError

from orchestrator.accounts.sealed_columns import (
    SealedColumn,
    list_sealed_columns,
    load_key_ids,
    rotate_seals,
)
from orchestrator.accounts.vault import describe_missing, get_keyring
from orchestrator.archives.database.state import find_pending_migrations
from orchestrator.benchmarks.access import find_projects_with_secrets
from orchestrator.benchmarks.host_keys import find_projects_with_other_host_key
from orchestrator.core.errors import PitwallError
from orchestrator.database.shared_redis import connect_redis
from orchestrator.fleet.models import Host, HostState, HostTransport
from orchestrator.operations import heartbeats
from orchestrator.operations.doctor import Finding, build_failure, build_ok, build_warning

OLDEST_POSTGRES = 14
MOST_CLOCK_S = 2.0
_KEPT = ("noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl")


def check_database() -> Iterator[Finding]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version_num")
            major = int(cursor.fetchone()[0]) // 10_000
    except DatabaseError as error:
        message = f"does not answer: {str(error).strip().splitlines()[0]}"
        yield build_failure("database", message, "Start PostgreSQL, or fix DATABASE_URL.")
        return
    if major < OLDEST_POSTGRES:
        fix = f"Move to PostgreSQL {OLDEST_POSTGRES} or newer."
        yield build_failure("database", f"PostgreSQL {major} is too old", fix)
    else:
        yield build_ok("database", f"PostgreSQL {major}")


def check_migrations() -> Iterator[Finding]:
    waiting = find_pending_migrations()
    if waiting:
        first = ", ".join(waiting[:3])
        yield build_failure(
            "migrations", f"{len(waiting)} not applied: {first}", "manage.py migrate"
        )
    else:
        yield build_ok("migrations", "all applied")


def check_database_settings() -> Iterator[Finding]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('synchronous_commit'), current_setting('fsync'),"
            " current_setting('max_connections')::int, pg_encoding_to_char(encoding)"
            " FROM pg_database WHERE datname = current_database()"
        )
        commits, syncs, connections, encoding = cursor.fetchone()
    if syncs == "off":
        fix = "ALTER SYSTEM SET fsync = on"
        yield build_failure("durability", "fsync is off: a crash can lose all data", fix)
    elif commits == "off":
        fix = "ALTER SYSTEM SET synchronous_commit = on"
        message = "synchronous_commit is off: a crash loses the last seconds"
        yield build_warning("durability", message, fix)
    else:
        yield build_ok(
            "durability", f"commits are written to disk; {connections} connections at most"
        )
    if encoding != "UTF8":
        fix = "Create it again with the encoding UTF8."
        yield build_failure("database text", f"its encoding is {encoding}", fix)


def check_database_role() -> Iterator[Finding]:
    """Warn if Pitwall's role (superuser or owner of tables) could change the audit log."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, rolsuper, EXISTS (SELECT FROM pg_tables"
            " WHERE schemaname = current_schema() AND tableowner = current_user)"
            " FROM pg_roles WHERE rolname = current_user"
        )
        name, is_superuser, is_owner = cursor.fetchone()
    if is_superuser or is_owner:
        what = "a superuser" if is_superuser else "the owner of the tables"
        yield build_warning(
            "database role",
            f"Pitwall runs as {name}, {what}: a bug in it could change the schema and the audit "
            "log",
            "Create the two roles of docker/postgres/roles.sql; only migrate and restore need the "
            "owner.",
        )
    else:
        yield build_ok("database role", f"{name} can change rows, but not the schema")


def check_clock() -> Iterator[Finding]:
    began = time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        theirs = float(cursor.fetchone()[0])
    off_s = theirs - (began + time.time()) / 2
    if abs(off_s) > MOST_CLOCK_S:
        fix = "Run an NTP client on both machines."
        yield build_failure("clock", f"differs from the database's by {off_s:+.1f} s", fix)
    else:
        yield build_ok("clock", "agrees with the database's")


def check_sealed_secrets() -> Iterator[Finding]:
    try:
        newest = get_keyring().newest
        broken = sum(map(_count_unopened, list_sealed_columns()))
    except PitwallError as error:
        yield build_failure("sealed secrets", str(error), "See the secret key above.")
        return
    if broken:
        steps = describe_missing(load_key_ids())
        again = "enter them again: `manage.py rotate_secrets --dry-run` lists them"
        fix = "; ".join(steps) or again
        yield build_failure(
            "sealed secrets", f"{broken} cannot be decrypted with the configured keys", fix
        )
    else:
        yield build_ok("sealed secrets", f"all can be decrypted; new ones get the key {newest}")


def _count_unopened(column: SealedColumn) -> int:
    """Return how many rows none of the keys opens. Each batch reports the total so far."""
    totals = [batch.broken for batch in rotate_seals(column, write=False)]
    return len(totals[-1]) if totals else 0


def check_redis() -> Iterator[Finding]:
    redis = connect_redis()
    try:
        redis.ping()
    except RedisError as error:
        fix = "Start Redis, or fix REDIS_URL. Until then no job proceeds."
        yield build_failure("Redis", f"does not answer: {error}", fix)
        return
    policy = _read_setting(redis, "maxmemory-policy")
    if policy and policy not in _KEPT:
        yield build_failure(
            "Redis",
            f"drops keys when it is full ({policy}), also ticks and messages of jobs",
            "maxmemory-policy noeviction, or a separate Redis for Pitwall",
        )
    else:
        yield build_ok("Redis", f"answers; when full: {policy or 'unknown, it does not report it'}")
    if _read_setting(redis, "appendonly") == "no" and not _read_setting(redis, "save"):
        yield build_ok("Redis persistence", "off; not needed, because all state is in PostgreSQL")
    else:
        yield build_ok("Redis persistence", "on; not needed, because all state is in PostgreSQL")


def _read_setting(redis: Redis, name: str) -> str:
    """Return a setting of Redis; empty if a hosted Redis does not report it."""
    try:
        # The client decodes only this answer by itself.
        reply: Any = redis.config_get(name)
    except RedisError:
        return ""
    return str(reply.get(name, ""))


_WITHOUT = {
    "worker": "no job proceeds",
    "beat": "no job proceeds",
    "background": "no repository is fetched, no result is analysed and no channel notified",
}
_COMMANDS = {
    "worker": "celery -A orchestrator.config worker",
    "beat": "celery -A orchestrator.config beat",
    "background": "python -m orchestrator.config.background_worker",
}


def check_processes() -> Iterator[Finding]:
    try:
        known = heartbeats.load_heartbeats(connect_redis(), settings.CELERY_TASK_DEFAULT_QUEUE)
    except RedisError:
        yield build_failure("processes", "unknown: Redis does not answer", "See Redis above.")
        return
    for kind in heartbeats.KINDS:
        alive = [each.name for each in known if each.kind == kind and each.is_alive]
        if alive:
            yield build_ok(f"{kind}s", f"{len(alive)}: {', '.join(sorted(alive))}")
        else:
            yield build_failure(
                f"{kind}s",
                f"none sent a heartbeat within {heartbeats.LATE_S:.0f} s: {_WITHOUT[kind]}",
                f"{_COMMANDS[kind]}, with the same REDIS_URL and PITWALL_QUEUE",
            )


def check_mail_server() -> Iterator[Finding]:
    if not settings.EMAIL_HOST:
        return
    server = get_connection()
    try:
        server.open()
        server.close()
    except OSError as error:
        fix = "Fix PITWALL_SMTP_HOST, _PORT, _USER, _PASSWORD, _TLS; invitations wait for it."
        yield build_failure("mail server", f"cannot be used: {error}", fix)
    else:
        yield build_ok("mail server", "accepts the login")


def check_repositories() -> Iterator[Finding]:
    secrets, changed = (
        find_projects_with_secrets().count(),
        find_projects_with_other_host_key().count(),
    )
    if secrets:
        yield build_failure(
            "repositories",
            f"{secrets} addresses contain a password, so these repositories are not fetched",
            "A worker seals them within five minutes; if none does, see the secret key above.",
        )
    if changed:
        yield build_warning(
            "repositories",
            f"{changed} git servers show another host key than the pinned one",
            "See Repository access on the pages of their projects.",
        )
    if not secrets and not changed:
        yield build_ok("repositories", "no password in an address, and no changed host key")


def check_hosts() -> Iterator[Finding]:
    used = Host.objects.exclude(state__in=(HostState.RETIRED, HostState.EXTERNAL))
    lost = used.filter(state=HostState.UNREACHABLE).count()
    if used.filter(transport=HostTransport.LOCAL).exists():
        yield build_warning(
            "hosts",
            "some are the machine of the worker itself",
            "With workers on several machines, add these as SSH hosts instead.",
        )
    if lost:
        yield build_warning(
            "hosts", f"{lost} cannot be reached", "Their pages show the reason and the fix."
        )
    else:
        yield build_ok("hosts", f"{used.count()}, all reachable")
