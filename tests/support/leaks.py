"""Everything that a running Pitwall stores or shows, as bytes to be searched for secrets."""

import base64
import contextlib
import socket
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import redis
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection


def list_encodings(secret: str) -> list[bytes]:
    """Return the encodings in which a secret may appear."""
    plain = secret.encode()
    return [plain, plain.hex().encode(), base64.b64encode(plain)[:-4], quote(secret).encode()]


def leaks(places: Mapping[str, bytes], secrets: Mapping[str, str]) -> list[str]:
    """Return which secret is found where."""
    return [
        f"{name} in {place}"
        for place, content in places.items()
        for name, secret in secrets.items()
        if any(form in content for form in list_encodings(secret))
    ]


def tables() -> dict[str, bytes]:
    """Return every table, as COPY writes it, with unpacked content."""
    contents = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (name,) in cursor.fetchall():
            contents[f"table {name}"] = _copied(cursor, name)
    sessions = [str(each.get_decoded()) for each in Session.objects.all()]
    return {**contents, "sessions": "\n".join(sessions).encode()}


def _copied(cursor: object, table: str) -> bytes:
    with cursor.cursor.copy(f'COPY "{table}" TO STDOUT') as copy:  # type: ignore[attr-defined]
        text = b"".join(bytes(part) for part in copy)
    cells = [cell[3:] for cell in text.replace(b"\n", b"\t").split(b"\t") if cell[:3] == b"\\\\x"]
    return b"\n".join([text, *(_unpacked(bytes.fromhex(cell.decode())) for cell in cells)])


def _unpacked(content: bytes) -> bytes:
    """Return decompressed zlib and gzip data; other data unchanged."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(content)
    except zlib.error:
        return content


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def watched_commands() -> Iterator[set[bytes]]:
    """Yield a set that collects the command lines of all processes during the block."""
    seen: set[bytes] = set()
    stop = threading.Event()

    def scan() -> None:
        while not stop.wait(0.1):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    seen.add(path.read_bytes())

    watcher = threading.Thread(target=scan)
    watcher.start()
    try:
        yield seen
    finally:
        stop.set()
        watcher.join()


@contextlib.contextmanager
def watched_redis() -> Iterator[list[bytes]]:
    """Yield a list that collects everything sent to Redis, and its final content."""
    parts = urlsplit(settings.CELERY_BROKER_URL)
    address = unquote(parts.netloc + parts.path)
    seen: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.connect(address)
        monitor.sendall(b"MONITOR\r\n")

        def listen() -> None:
            while content := monitor.recv(1 << 20):
                seen.append(content)

        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield seen
        finally:
            monitor.shutdown(socket.SHUT_RDWR)
            listener.join()
    with redis.Redis(unix_socket_path=address) as client:
        seen.extend(client.dump(key) or b"" for key in client.scan_iter())
