"""Read typed settings from the environment. Imports nothing of Django."""

import os
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit


def read_text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def read_flag(name: str, *, default: bool = False) -> bool:
    return read_text(name, "1" if default else "0").lower() in {"1", "true", "yes", "on"}


def read_number(name: str, default: int = 0) -> int:
    """Return `read_whole`, or `default` if the variable is not set."""
    value = read_whole(name)
    return default if value is None else value


def read_choice(name: str, choices: tuple[str, ...]) -> str:
    """Return a variable that must be one of `choices`; by default the first.

    Raise ValueError otherwise.
    """
    value = read_text(name, choices[0])
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(choices)}, got {value!r}")
    return value


def read_words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in read_text(name, default).split(",") if word.strip()]


def read_whole(name: str) -> int | None:
    """Return a whole number from 0 on; None if the variable is not set.

    Raise ValueError, with the name, for another value.
    """
    value = read_text(name)
    if not value:
        return None
    if not value.isdecimal():
        raise ValueError(f"{name}: expected a whole number, 0 or more, got {value!r}")
    return int(value)


def read_limit(name: str, default: int) -> int | None:
    """Return `read_whole`, or `default` if it is not set; None (no limit) for the word none."""
    return None if read_text(name) == "none" else read_number(name, default)


def read_path(name: str, default: Path) -> Path:
    value = read_text(name)
    return Path(value).resolve() if value else default


def read_server_url(name: str) -> str:
    """Return an address for secrets: https, or http on this machine; empty if not set."""
    value = read_text(name).rstrip("/")
    parts = urlsplit(value)
    safe = parts.scheme == "https" or parts.hostname in {"127.0.0.1", "::1", "localhost"}
    if value and not (safe and parts.hostname):
        raise ValueError(f"{name} must begin with https://: the client secret is sent there")
    return value


def read_proxy_url(name: str) -> str:
    """Return an HTTP proxy, `http://[user:password@]host:port`; empty if not set."""
    value = read_text(name).rstrip("/")
    parts = urlsplit(value)
    if value and not (parts.scheme in {"http", "https"} and parts.hostname):
        raise ValueError(f"{name}: expected an address such as http://proxy.example.org:3128")
    return value


def read_named_keys(name: str) -> list[tuple[str, str]]:
    """Return `id:secret` pairs, the newest first.

    Raise ValueError if one is malformed or too short.
    """
    pairs = [word.partition(":") for word in read_words(name)]
    for key, _, secret in pairs:
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,31}", key) or key.startswith("secret-key"):
            raise ValueError(
                f"{name}: {key!r} is not an id: lower-case letters, digits, dots, dashes"
            )
        if len(secret) < 32:
            raise ValueError(f"{name}: the key {key} needs a secret of 32 or more characters")
    if len({key for key, _, _ in pairs}) < len(pairs):
        raise ValueError(f"{name} names an id twice")
    return [(key, secret) for key, _, secret in pairs]


def parse_database_url(url: str) -> dict[str, object]:
    """Return Django's DATABASES entry for `postgresql://user:password@host:port/name`.

    `?host=/socket/folder` names a UNIX socket, as in libpq's own URLs. Raise ValueError if the URL
    is not PostgreSQL's or names no database.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ValueError(f"DATABASE_URL must begin with postgresql://, got {parts.scheme!r}")
    name = parts.path.lstrip("/")
    if not name:
        raise ValueError("DATABASE_URL names no database: postgresql://user@host:5432/NAME")
    query: dict[str, object] = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    # Notice a server that vanished within half a minute, and not when TCP gives up.
    patience = {
        "connect_timeout": 5,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }
    # Plan statements once per connection, not once per page (docs/decisions/0026).
    prepared = {"server_side_binding": True, "prepare_threshold": 2}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(name),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or ""),
        # With the health checks below an old connection is as good as a new one, and keeps its
        # plans.
        "CONN_MAX_AGE": 3600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**patience, **prepared, **query},
    }
