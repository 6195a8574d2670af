"""A port of loopback in front of the tests' own servers, which listen on sockets of their owner."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, unquote, urlsplit


@contextmanager
def forwarded(url: str) -> Iterator[str]:
    """The same server by TCP; `url` is one of PostgreSQL or Redis. One by TCP stays as it is."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    if parts.scheme == "redis+socket":
        path = unquote(parts.netloc + parts.path)
        with _forward_port(path) as port:
            yield f"redis://127.0.0.1:{port}/{query.get('virtual_host', ['0'])[0].strip('/')}"
    elif host := query.get("host", [""])[0]:
        number = query.get("port", ["5432"])[0]
        with _forward_port(f"{host}/.s.PGSQL.{number}") as port:
            login = parts.netloc.rpartition("@")[0]
            yield f"postgresql://{login}@127.0.0.1:{port}{parts.path}"
    else:
        yield url


@contextmanager
def _forward_port(path: str) -> Iterator[int]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(_serve(path), loop).result(10)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _serve(path: str) -> asyncio.Server:
    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_unix_connection(path)
        await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))

    return await asyncio.start_server(join, "127.0.0.1", 0)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()


async def _end(server: asyncio.Server) -> None:
    """The copies in between too: those that wait for an end of their own have none."""
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
