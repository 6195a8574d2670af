"""Checks of the settings. They contact no other machine."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from cli.pitwall.units import format_bytes
from orchestrator.operations.doctor import Finding, build_failure, build_ok, build_warning

SHORTEST_KEY = 50
_GIB = 2**30
_LITTLE_ROOM_BYTES = 2 * _GIB
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def check_debug() -> Iterator[Finding]:
    if settings.DEBUG:
        yield build_failure(
            "debug", "is on: error pages show settings to all users", "PITWALL_DEBUG=0"
        )
    else:
        yield build_ok("debug", "is off")


def check_secret_key() -> Iterator[Finding]:
    if not settings.SECRET_KEY_IS_GIVEN:
        make = "python3 -c 'import secrets; print(secrets.token_urlsafe(50))'"
        yield build_failure(
            "secret key",
            "is not set",
            f"Set PITWALL_SECRET_KEY for all processes. To generate one: {make}",
        )
    elif len(settings.SECRET_KEY) < SHORTEST_KEY or len(set(settings.SECRET_KEY)) < 10:
        yield build_failure(
            "secret key",
            f"can be guessed: it has {len(settings.SECRET_KEY)} characters",
            f"Set one of {SHORTEST_KEY} random characters or more, and the old one as "
            "PITWALL_SECRET_KEY_FALLBACKS.",
        )
    else:
        yield build_ok("secret key", "is set")


def check_base_url() -> Iterator[Finding]:
    parts = urlsplit(settings.BASE_URL)
    if parts.hostname in _LOOPBACK:
        yield build_warning(
            "address",
            f"{settings.BASE_URL}: links and cookie settings fit this machine only",
            "Set PITWALL_BASE_URL to the https address that users type.",
        )
    elif not settings.HTTPS:
        yield build_failure(
            "address",
            f"{settings.BASE_URL}: passwords and tokens are sent unencrypted",
            "Put a reverse proxy with TLS in front; set PITWALL_BASE_URL to its https address.",
        )
    else:
        yield build_ok("address", settings.BASE_URL)


def check_allowed_hosts() -> Iterator[Finding]:
    name = urlsplit(settings.BASE_URL).hostname or ""
    allowed = [host.strip("[]") for host in settings.ALLOWED_HOSTS]
    if "*" in allowed:
        yield build_failure(
            "allowed hosts",
            "any host name is accepted: an attacker can redirect links in mail",
            f"PITWALL_ALLOWED_HOSTS={name}",
        )
    elif name not in allowed and not any(
        host.startswith(".") and name.endswith(host) for host in allowed
    ):
        yield build_failure(
            "allowed hosts",
            f"{name} of PITWALL_BASE_URL is not among them: every page is refused",
            f"Add {name} to PITWALL_ALLOWED_HOSTS.",
        )
    else:
        yield build_ok("allowed hosts", ", ".join(allowed))


def check_trusted_proxies() -> Iterator[Finding]:
    if settings.HTTPS and not settings.ALLAUTH_TRUSTED_PROXY_COUNT:
        yield build_warning(
            "proxies",
            "none is trusted: failed logins of all users count as those of one address",
            "Set PITWALL_TRUSTED_PROXIES to the number of your proxies that a request passes.",
        )
    else:
        yield build_ok("proxies", f"{settings.ALLAUTH_TRUSTED_PROXY_COUNT} trusted")


def check_metrics_token() -> Iterator[Finding]:
    if settings.METRICS_TOKEN and len(settings.METRICS_TOKEN) < 20:
        yield build_failure(
            "metrics", "the token can be guessed", "Set a longer PITWALL_METRICS_TOKEN."
        )
    else:
        proxied = settings.HTTPS or settings.ALLAUTH_TRUSTED_PROXY_COUNT
        others = "nobody until PITWALL_METRICS_TOKEN is set" if proxied else "this machine only"
        yield build_ok(
            "metrics", f"shown to {'clients with the token' if settings.METRICS_TOKEN else others}"
        )


def check_local_repositories() -> Iterator[Finding]:
    if settings.ALLOW_LOCAL_REPOSITORIES:
        yield build_warning(
            "repositories",
            "paths of this machine are allowed: members can read all repositories on it",
            "PITWALL_ALLOW_LOCAL_REPOSITORIES=0, unless this is a demo.",
        )
    else:
        yield build_ok("repositories", "only repositories of other machines are allowed")


def check_local_host() -> Iterator[Finding]:
    if settings.ALLOW_LOCAL_HOST:
        yield build_warning(
            "local host",
            "members can run code as the user of the workers on this machine",
            "PITWALL_ALLOW_LOCAL_HOST=0, unless this is your own machine.",
        )
    else:
        yield build_ok("local host", "only other machines are measured")


def check_static_files() -> Iterator[Finding]:
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    if manifest.is_file():
        yield build_ok("static files", str(settings.STATIC_ROOT))
    else:
        yield build_failure(
            "static files",
            f"none in {settings.STATIC_ROOT}: web processes cannot show a page",
            "manage.py collectstatic --noinput, with the PITWALL_STATIC_ROOT of web processes",
        )


def check_data_folder() -> Iterator[Finding]:
    folder = Path(settings.DATA_DIR)
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not _can_write(there):
        yield build_failure(
            "data folder",
            f"{folder} cannot be written to: no repository can be fetched",
            f"Give it to this user (id {os.getuid()}), or set PITWALL_DATA_DIR.",
        )
        return
    free = shutil.disk_usage(there).free
    if free < _LITTLE_ROOM_BYTES:
        yield build_warning(
            "data folder",
            f"{folder} has {format_bytes(free)} left for mirrors of repositories",
            "Make room, or set PITWALL_DATA_DIR to a larger disk; the files in it may be deleted.",
        )
    else:
        yield build_ok("data folder", f"{folder}: {format_bytes(free)} free")


def _can_write(folder: Path) -> bool:
    """Return whether a file can be created there.

    Permissions do not show it: root may do everything.
    """
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def check_mail() -> Iterator[Finding]:
    if not settings.EMAIL_HOST:
        yield build_ok("mail", "none: invitations are links, and no channel is by e-mail")
    elif not settings.EMAIL_USE_TLS and settings.EMAIL_HOST not in _LOOPBACK:
        yield build_warning("mail", "is sent unencrypted", "PITWALL_SMTP_TLS=1")
    else:
        yield build_ok("mail", f"by {settings.EMAIL_HOST}:{settings.EMAIL_PORT}")
