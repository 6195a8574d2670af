"""A private PostgreSQL: find it, initialise it, and describe it as a service to supervise.

It listens only on a Unix socket in a folder that only we can enter.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from devstack.postgres_binaries import Binaries, PostgresError, choose_binaries, read_data_major
from devstack.processes import Command, Service
from devstack.runtime import create_runtime_folder, give_to

NOBODY = 65534
START_RETRY_S = 10.0
INITDB_TIMEOUT_S = 120
# These settings trade durability for speed, for an instance that lives as long as its tests.
CARELESS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How to run as another user than root: a prefix for a command, or a user to become."""

    prefix: tuple[str, ...] = ()
    user: tuple[int, int] | None = None


class Postgres:
    """One data folder. `prepare` it, supervise `service`, then call `create_database` once."""

    def __init__(self, *, data: Path, log: Path, careless: bool = False) -> None:
        self.data = data
        self.log = log
        self.careless = careless
        self.sockets = create_runtime_folder(data)

    @property
    def url(self) -> str:
        return f"postgresql://pitwall@/pitwall?host={quote(str(self.sockets), safe='')}"

    def prepare(self) -> None:
        """Choose binaries and an identity, and run initdb if there is no data folder yet.

        Raises PostgresError.
        """
        self.binaries = choose_binaries(read_data_major(self.data))
        self.identity = choose_identity(self.binaries)
        if self.identity.user is not None:
            give_to(self.sockets, self.identity.user)
        if read_data_major(self.data) is None:
            self._initdb()
        forget_recycled_pid(self.data / "postmaster.pid")

    def service(self) -> Service:
        settings = [
            "listen_addresses=",
            f"unix_socket_directories={self.sockets}",
            "unix_socket_permissions=0700",
            "timezone=UTC",
            *(CARELESS if self.careless else ()),
        ]
        argv = [str(self.binaries.folder / "postgres"), "-D", str(self.data)]
        argv += [word for setting in settings for word in ("-c", setting)]
        return Service(
            command=Command(
                name="postgres",
                argv=(*self.identity.prefix, *argv),
                env=build_environment(),
                cwd=self.data,
                log=self.log,
                user=self.identity.user,
            ),
            ready=self._answers,
            # After a kill -9 the children of the old postmaster take a moment to notice.
            start_retry_s=START_RETRY_S,
            # SIGINT is "fast": sessions are ended. SIGQUIT is "immediate": recovery at next start.
            stop=((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0)),
        )

    def create_database(self) -> None:
        """Create the role and the database `pitwall` if they do not exist."""
        with self._connect() as connection:
            role = connection.execute("SELECT FROM pg_roles WHERE rolname = 'pitwall'").fetchone()
            if role is None:
                connection.execute("CREATE ROLE pitwall LOGIN CREATEDB")
            known = connection.execute("SELECT FROM pg_database WHERE datname = 'pitwall'")
            if known.fetchone() is None:
                connection.execute("CREATE DATABASE pitwall OWNER pitwall")

    def _initdb(self) -> None:
        # initdb removes its files on failure, but not after a kill -9: build elsewhere, then
        # rename.
        new = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700, parents=True)
        if self.identity.user is not None:
            give_to(new, self.identity.user)
        argv = [str(self.binaries.folder / "initdb"), "-D", str(new), "-U", "postgres"]
        argv += ["--auth=trust", "--encoding=UTF8", "--no-locale"]
        argv += ["--no-sync"] if self.careless else []
        run_initdb(argv, self.identity, self.log)
        with contextlib.suppress(FileNotFoundError):
            # This is always an empty folder: one with PG_VERSION does not get here.
            self.data.rmdir()
        new.rename(self.data)

    def _answers(self) -> bool:
        try:
            with self._connect():
                return True
        except psycopg.OperationalError:
            return False

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.sockets),
            user="postgres",
            dbname="postgres",
            autocommit=True,
            connect_timeout=5,
        )


def choose_identity(binaries: Binaries) -> Identity:
    """PostgreSQL refuses to run as root: use a user namespace, otherwise the user postgres."""
    if os.geteuid() != 0:
        return Identity()
    prefix = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
    postgres = str(binaries.folder / "postgres")
    if can_run((*prefix, postgres, "--version")):
        return Identity(prefix=prefix)
    user = find_system_user()
    if user is not None and can_run((postgres, "--version"), user):
        return Identity(user=user)
    raise PostgresError(
        "PostgreSQL refuses to run as root, this machine refuses user namespaces (unshare --user), "
        f"and there is no system user postgres that can run {postgres}. Run as an ordinary user, "
        "or apt-get install postgresql, or set DATABASE_URL."
    )


def find_system_user() -> tuple[int, int] | None:
    try:
        entry = pwd.getpwnam("postgres")
    except KeyError:
        return None
    return entry.pw_uid, entry.pw_gid


def can_run(argv: tuple[str, ...], user: tuple[int, int] | None = None) -> bool:
    uid, gid = user or (None, None)
    try:
        done = subprocess.run(
            argv,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=uid,
            group=gid,
            extra_groups=None if user is None else [],
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def run_initdb(argv: list[str], identity: Identity, log: Path) -> None:
    uid, gid = identity.user or (None, None)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.with_name("initdb.log").open("wb") as out:
        status = subprocess.run(
            [*identity.prefix, *argv],
            env=build_environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            user=uid,
            group=gid,
            extra_groups=None if identity.user is None else [],
            timeout=INITDB_TIMEOUT_S,
            # Handle Ctrl-C ourselves: half a data folder is useless.
            start_new_session=True,
        ).returncode
    if status != 0:
        text = log.with_name("initdb.log").read_text(errors="replace")
        raise PostgresError(
            f"initdb failed. Its user must be able to enter every folder above the data.\n{text}"
        )


def build_environment() -> dict[str, str]:
    """Return our environment without PGHOST and the like, which may name another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "LC_ALL": "C"}


def forget_recycled_pid(pid_file: Path) -> None:
    """Remove a postmaster.pid whose number now belongs to another program.

    We hold the lock of the instance, so none of our postmasters runs. But a restarted container
    reuses the same small numbers, and PostgreSQL would refuse to start.
    """
    try:
        pid = int(pid_file.read_text().split()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return
    name = read_program_name(pid)
    if name and "postgres" not in name and "postmaster" not in name:
        pid_file.unlink()


def read_program_name(pid: int) -> str:
    """Return the name of a process; empty if it is unknown."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    with contextlib.suppress(OSError):
        argv = ["ps", "-p", str(pid), "-o", "comm="]
        return subprocess.run(argv, capture_output=True, text=True).stdout.strip()
    return ""
