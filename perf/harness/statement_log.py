"""The number of statements that Pitwall's processes send to the PostgreSQL of a benchmark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import LiteralString

import psycopg
from django.conf import settings

#: Pitwall's processes set their name (`operations/database_limits.py`), the benchmark does not.
_STATEMENT = re.compile(rb"^pitwall\|LOG:  (?:execute [^:]*|statement):", re.MULTILINE)
_LOGGING: tuple[LiteralString, ...] = (
    "ALTER SYSTEM SET log_line_prefix = '%a|'",
    "ALTER SYSTEM SET log_statement = 'all'",
    "SELECT pg_reload_conf()",
)


class StatementLog:
    """Counts statements in the log of the server, which is in the folder of the instance."""

    def __init__(self) -> None:
        self._path = Path(settings.DATA_DIR).parent / "logs" / "postgres.log"
        self._read = self._path.stat().st_size
        self._count = 0
        database = settings.DATABASES["default"]
        with psycopg.connect(
            host=str(database["HOST"]), user="postgres", dbname="postgres", autocommit=True
        ) as superuser:
            for line in _LOGGING:
                superuser.execute(line)

    def count(self) -> int:
        """Return the number of statements so far."""
        with self._path.open("rb") as log:
            log.seek(self._read)
            # A line that is not complete is read next time.
            text = log.read().rpartition(b"\n")[0]
        self._read += len(text)
        self._count += len(_STATEMENT.findall(text))
        return self._count
