"""A hostile git server: slow, endless, redirecting, and with odd refs, dates and names.

Real git fetches from it over real HTTP, and afterwards Pitwall reads everything from the mirror. A
finding is an error other than InvalidRequestError, a fetch beyond its time limit, a connection to
an unchecked address, much memory, or a leftover.
"""

import contextlib
import random
import resource
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.benchmarks.repository import Limits, Repository
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import git, make_repository

TIMEOUT_S = 1.5
#: The time of a case beyond the limit of its fetches, on a busy machine.
SLACK_S = 20.0
MIRROR_BYTES = 3 << 20
MOST_MEMORY_BYTES = 300 << 20
#: A target that one of the odd refs names.
_EVIL = Path(tempfile.gettempdir()) / "pitwall-evil"
_HERE = ("127.0.0.0/8",)
_TYPE = "application/x-git-upload-pack-{}"
_DATES = ("1700000000 +2400", "253402300800 +0000", "9" * 40 + " +0000", "-1 -9999", "", "x y", "0")
_NAMES = (
    "A <a@b>",
    "\x1f\x1e\u2028 <>",
    "\ud7ff" * 300 + " <a@b>",
    "",
    "<",
    "A\x00B <c>",
    "\r <a>",
)


@dataclass(slots=True)
class GitServerTally:
    cases: int = 0
    fetched: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    most_memory_bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Server:
    """Answers each connection by `behave`, which gets the request and the socket."""

    def __init__(self) -> None:
        self.behave: Callable[[bytes, socket.socket], None] = lambda *_: None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in list(self._threads):
            thread.join()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=[client, self.behave])
            self._threads = [each for each in self._threads if each.is_alive()] + [thread]
            thread.start()

    def _serve(self, client: socket.socket, behave: Callable[..., None]) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(TIMEOUT_S * 2)
            behave(_request(client), client)


def _request(client: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data and (more := client.recv(65536)):
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            while len(body) < int(line[15:]) and (more := client.recv(65536)):
                body += more
    return head + b"\r\n\r\n" + body


class Honest:
    """The answers of git itself for a repository, over its smart HTTP protocol."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, request: bytes) -> tuple[str, bytes]:
        head, _, body = request.partition(b"\r\n\r\n")
        command = ["git", "upload-pack", "--stateless-rpc", str(self._folder)]
        if head.startswith(b"POST"):
            return _TYPE.format("result"), _output(command, body)
        service = b"001e# service=git-upload-pack\n0000"
        return _TYPE.format("advertisement"), service + _output(
            [*command[:3], "--advertise-refs", command[3]], b""
        )


def _output(command: list[str], body: bytes) -> bytes:
    done = subprocess.run(command, input=body, capture_output=True, check=False)
    return done.stdout


def fuzz(folder: Path, cases: int, seed: int) -> GitServerTally:
    """Try `cases` cases of all kinds in turn; the same seed gives the same cases."""
    chance, seen = random.Random(seed), GitServerTally()
    trap, server = socket.create_server(("127.0.0.1", 0)), Server()
    trap.setblocking(False)
    with contextlib.closing(trap), contextlib.closing(server):
        kinds = _kinds(folder, trap.getsockname()[1], chance)
        for number in range(cases):
            kind = list(kinds)[number % len(kinds)]
            server.behave = kinds[kind]()
            with tempfile.TemporaryDirectory(dir=folder) as below:
                _try(Path(below), server.port, kind, seen)
            with contextlib.suppress(BlockingIOError):
                trap.accept()[0].close()
                seen.faults.append(f"{kind} {number}: git was redirected to another address")
    return seen


def _try(folder: Path, port: int, kind: str, seen: GitServerTally) -> None:
    mirror, temporary = folder / "m.git", folder / "tmp"
    temporary.mkdir()
    remote = Remote(url=f"http://127.0.0.1:{port}/r", allow_local=False, allowed=_HERE)
    limits = Limits(fetch_timeout_s=TIMEOUT_S, mirror_bytes=MIRROR_BYTES, packed_bytes=1 << 22)
    repository = Repository(remote, mirror, limits=limits)
    seen.cases += 1
    seen.kinds[kind] += 1
    memory, began = _memory_bytes(), time.monotonic()
    try:
        with _temporary_files_in(temporary):
            repository.fetch(on_progress=lambda _: None)
    except InvalidRequestError as error:
        seen.refused += 1
        seen.words[str(error)[:100]] += 1
        if mirror.exists():
            seen.faults.append(f"{kind}: a mirror is left after: {error}")
    except Exception as error:
        seen.faults.append(f"{kind}: {type(error).__name__}: {error}")
    else:
        seen.fetched += 1
        seen.faults += [f"{kind}: {fault}" for fault in _read_all(repository)]
    took_s, grown = time.monotonic() - began, _memory_bytes() - memory
    seen.slowest_s = max(seen.slowest_s, took_s)
    seen.most_memory_bytes = max(seen.most_memory_bytes, grown)
    if took_s > TIMEOUT_S + SLACK_S:
        seen.faults.append(f"{kind}: it took {took_s:.0f} s")
    if grown > MOST_MEMORY_BYTES:
        seen.faults.append(f"{kind}: it took {grown >> 20} MiB of memory")
    if left := [*temporary.iterdir(), *filter(Path.exists, [_EVIL])]:
        seen.faults.append(f"{kind}: left behind: {left}")


@contextlib.contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    usual, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = usual


def _read_all(repository: Repository) -> Iterator[str]:
    """Read a mirror in all ways, and yield the faults."""
    tips = []
    with contextlib.suppress(InvalidRequestError):
        tips = repository.tips()
    readers: list[Callable[[], object]] = [
        repository.branches, repository.tags, repository.tagged,
        lambda: repository.select_fetched(["0" * 40]),
    ]  # fmt: skip
    for name, sha in tips[:5]:
        readers += [
            lambda name=name: repository.resolve(name),
            lambda sha=sha: repository.describe(sha),
            lambda sha=sha: repository.history(sha, limit=50),
            lambda sha=sha: repository.count(sha),
            lambda sha=sha: repository.select_known(["0" * 40, sha]),
            lambda sha=sha: repository.first_parents(sha),
            lambda sha=sha: repository.new_since(sha, f"{sha}~1", limit=5),
            lambda sha=sha: [repository.read(sha, path) for path in repository.files(sha)],
        ]
    for read in readers:
        try:
            read()
        except InvalidRequestError:
            pass
        except Exception as error:
            yield f"{type(error).__name__}: {error}"


def _kinds(
    folder: Path, trap: int, chance: random.Random
) -> dict[str, Callable[[], Callable[[bytes, socket.socket], None]]]:
    make_repository(folder / "origin", [{"a.txt": "one"}, {"a.txt": "two"}])
    honest = Honest(folder / "origin" / ".git")
    elsewhere = f"http://127.0.0.1:{trap}/r"

    def odd_history() -> Callable[[bytes, socket.socket], None]:
        origin = folder / f"odd-{chance.randrange(1 << 40)}"
        make_repository(origin, [{"a.txt": "one"}])
        _add_odd_commit(origin, chance)
        return lambda request, client: _answer(client, *Honest(origin / ".git")(request))

    def changed() -> Callable[[bytes, socket.socket], None]:
        def behave(request: bytes, client: socket.socket) -> None:
            kind, body = honest(request)
            _answer(client, kind, _changed(body, chance))

        return behave

    def odd_refs() -> Callable[[bytes, socket.socket], None]:
        return lambda request, client: _answer(client, *_odd_refs(honest(request), chance))

    def redirecting() -> Callable[[bytes, socket.socket], None]:
        target = chance.choice((elsewhere, "file:///etc", "gopher://127.0.0.1/", "//[::1]/", "/r"))
        status = chance.choice((301, 302, 303, 307, 308))
        line = f"HTTP/1.1 {status} X\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
        return lambda _, client: client.sendall(line.encode())

    def alternates() -> Callable[[bytes, socket.socket], None]:
        """Serve the plain protocol, with alternates that point elsewhere."""
        return lambda request, client: _dumb(request, client, elsewhere)

    def endless() -> Callable[[bytes, socket.socket], None]:
        piece = chance.choice((b"0008NAK\n", b"2005\x01" + bytes(0x2000), b"\0" * 8192))
        head = chance.choice((_TYPE.format("advertisement"), _TYPE.format("result"), "text/plain"))
        return lambda _, client: _repeat(client, head, piece, pause_s=0.0)

    def slow() -> Callable[[bytes, socket.socket], None]:
        return lambda _, client: _repeat(client, _TYPE.format("advertisement"), b"0", pause_s=0.1)

    def silent() -> Callable[[bytes, socket.socket], None]:
        return lambda _, client: client.recv(1)

    def broken() -> Callable[[bytes, socket.socket], None]:
        size = chance.choice((0, 1, 100, 100_000))
        return lambda _, client: client.sendall(chance.randbytes(size))

    return {
        "odd history": odd_history, "changed bytes": changed, "odd refs": odd_refs,
        "redirect": redirecting, "changed again": changed, "alternates": alternates,
        "broken": broken, "odd dates": odd_history, "endless": endless, "changed more": changed,
        "slow": slow, "silent": silent,
    }  # fmt: skip


def _add_odd_commit(origin: Path, chance: random.Random) -> None:
    parent = git(origin, "rev-parse", "main").strip()
    tree = git(origin, "rev-parse", "main^{tree}").strip()
    lines = [f"tree {tree}"]
    lines += [f"parent {parent}"] * chance.choice((0, 1, 1, 3))
    lines += [f"author {chance.choice(_NAMES)} {chance.choice(_DATES)}"] * chance.choice((0, 1, 1))
    lines += [f"committer {chance.choice(_NAMES)} {chance.choice(_DATES)}"] * chance.choice((0, 1))
    subject = "".join(chr(chance.choice((10, 13, 27, 30, 31, 0x85, 0x2028, 65))) for _ in range(40))
    text = "\n".join(lines) + "\n\n" + subject
    make = ["hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    done = subprocess.run(
        ["git", "-C", str(origin), *make], input=text.encode("utf-8", "replace"),
        capture_output=True, check=True,
    )  # fmt: skip
    (origin / ".git" / "refs" / "heads" / "odd").write_text(done.stdout.decode())


def _changed(body: bytes, chance: random.Random) -> bytes:
    data = bytearray(body)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                del data[at:]
            case 1:
                data[at:at] = chance.randbytes(chance.randrange(1, 50))
            case 2 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case _:
                data[at:at] = data[at : at + 100]
    return bytes(data)


def _odd_refs(honest: tuple[str, bytes], chance: random.Random) -> tuple[str, bytes]:
    """Return many more refs, and invalid names of refs."""
    kind, body = honest
    if "advertisement" not in kind:
        return honest
    sha = body.rpartition(b" refs/heads/main\n")[0][-40:]
    names = (
        "refs/heads" + "/.." * 20 + str(_EVIL), "refs/heads/a\x85b", "refs/heads/a\u2028b",
        "refs/heads/" + "x" * 5000, "refs/heads/-x", "refs/heads/a b", "HEAD", "refs/heads/HEAD",
        "refs/heads/main.lock", "refs/pitwall/x", "refs/tags/\x1b[31m", "refs/heads/@{1}",
    )  # fmt: skip
    chosen = [chance.choice(names) for _ in range(chance.choice((1, 3)))]
    chosen += [f"refs/heads/n{number}" for number in range(chance.choice((0, 0, 2000)))]
    lines = b"".join(_line(sha + b" " + name.encode() + b"\n") for name in dict.fromkeys(chosen))
    return kind, body[:-4] + lines + b"0000"


def _line(data: bytes) -> bytes:
    return f"{len(data) + 4:04x}".encode() + data


def _dumb(request: bytes, client: socket.socket, elsewhere: str) -> None:
    path = request.split(b" ")[1].partition(b"?")[0]
    if path.endswith(b"/info/refs"):
        _answer(client, "text/plain", b"a" * 40 + b"\trefs/heads/main\n")
    elif path.endswith(b"alternates"):
        _answer(client, "text/plain", f"{elsewhere}/objects\n".encode())
    else:
        client.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def _answer(client: socket.socket, kind: str, body: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)


def _repeat(client: socket.socket, kind: str, piece: bytes, *, pause_s: float) -> None:
    """Send until the client closes the connection."""
    client.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode())
    if "advertisement" in kind:
        client.sendall(b"001e# service=git-upload-pack\n0000")
    while True:
        client.sendall(piece)
        time.sleep(pause_s)


def _memory_bytes() -> int:
    """Return the peak memory of this process and of its largest child."""
    mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * max(mine, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
