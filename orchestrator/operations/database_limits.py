"""Time limits that PostgreSQL applies to the statements of each kind of process.

Commands of an operator (migrate, backup, restore, imports) have no limit: they may take hours, and
somebody watches them. DATABASE_URL may set other limits (`?options=-c statement_timeout=2min`).
"""

from collections.abc import Mapping
from types import MappingProxyType

from django.db import connections

Limits = Mapping[str, str]

_ENGINE: Limits = MappingProxyType(
    {
        "statement_timeout": "10min",
        "lock_timeout": "1min",
        "idle_in_transaction_session_timeout": "5min",
    }
)
#: By kind of process: parameters of PostgreSQL for each of its sessions.
LIMITS: Mapping[str, Limits] = MappingProxyType(
    {
        "web": MappingProxyType(
            {
                "statement_timeout": "30s",
                "lock_timeout": "10s",
                "idle_in_transaction_session_timeout": "1min",
            }
        ),
        "worker": _ENGINE,
        "background": _ENGINE,
        "beat": _ENGINE,
    }
)

#: Marks options that have their limits already.
_FIRST = "-c application_name=pitwall "


def limit_sessions(process: str) -> None:
    """Apply the limits to each session that this process opens from now on.

    Options of DATABASE_URL come last and therefore win. A worker that includes a beat has the
    limits of the one that started first.
    """
    options = connections.settings["default"]["OPTIONS"]
    given = options.get("options", "")
    if given.startswith(_FIRST):
        return
    ours = " ".join(f"-c {name}={value}" for name, value in LIMITS[process].items())
    options["options"] = f"{_FIRST}{ours} {given}".strip()
