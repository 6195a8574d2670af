"""Where git may be sent by an address that somebody typed, and how much it may bring."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.archives.projects.exporting import _export_project
from orchestrator.benchmarks.git_calls import TooMuchError, call_git, run_bounded
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.benchmarks.remotes import (
    ServerAddress,
    check_url,
    open_route,
    parse_place,
    strip_secret,
)
from orchestrator.benchmarks.repository import Repository
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import make_repository
from tests.support.http_servers import Got, serving

HERE = ("127.0.0.0/8",)
NAME = "git.pitwall.example"


class GitServer:
    """A repository over git's plain HTTP protocol; `asked` are the paths of all requests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.requests: list[str] = []

    def __call__(self, got: Got) -> tuple[int, bytes, dict[str, str]]:
        path = got.path.partition("?")[0]
        self.requests.append(path)
        file = self._folder / path.lstrip("/")
        return (200, file.read_bytes(), {}) if file.is_file() else (404, b"", {})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, GitServer, str]]:
    """The address, the server, and the commit that it has."""
    (sha,) = make_repository(tmp_path / "work", [{"a.txt": "one"}])
    bare = tmp_path / "served" / "r.git"
    subprocess.run(["git", "clone", "-q", "--bare", tmp_path / "work", bare], check=True)
    subprocess.run(["git", "--git-dir", bare, "update-server-info"], check=True)
    server = GitServer(bare.parent)
    with serving(server) as url:
        yield f"{url}/r.git", server, sha


def named(monkeypatch: Any, address: str) -> None:
    """For this process alone the name has this address; for git it has none."""
    real = socket.getaddrinfo

    def resolve(host: str, *more: Any, **words: Any) -> Any:
        return real(address if host == NAME else host, *more, **words)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def reader(url: str, mirror: Path, **more: Any) -> Repository:
    return Repository(Remote(url=url, allow_local=False, **{"allowed": HERE, **more}), mirror)


class Trap:
    """Listens on loopback and counts who comes; nobody must."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]

    def was_reached(self) -> bool:
        """Connections wait in the queue of the kernel."""
        try:
            self._listener.accept()
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def trap() -> Iterator[Trap]:
    with contextlib.closing(Trap()) as trap:
        yield trap


def test_internal_servers_are_refused_unless_allowed(
    served: tuple[str, GitServer, str], tmp_path: Path
) -> None:
    url, server, sha = served
    with pytest.raises(InvalidRequestError, match="PITWALL_ALLOWED_INTERNAL_NETWORKS"):
        reader(url, tmp_path / "no.git", allowed=()).fetch()
    assert server.requests == []

    allowed = reader(url, tmp_path / "yes.git")
    allowed.fetch()
    assert allowed.resolve("main") == sha


def test_git_connects_to_the_address_that_was_checked(
    served: tuple[str, GitServer, str], tmp_path: Path, monkeypatch: Any
) -> None:
    named(monkeypatch, "127.0.0.1")
    repository = reader(served[0].replace("127.0.0.1", NAME), tmp_path / "m.git")
    repository.fetch()
    assert repository.resolve("main") == served[2]


def test_git_follows_no_redirect(served: tuple[str, GitServer, str], tmp_path: Path) -> None:
    inside, server, _ = served

    def lead_on(got: Got) -> tuple[int, bytes, dict[str, str]]:
        return 302, b"", {"Location": inside.removesuffix("/r.git") + got.path}

    with (
        serving(lead_on) as url,
        pytest.raises(InvalidRequestError, match="git cannot read"),
    ):
        reader(f"{url}/r.git", tmp_path / "m.git").fetch()
    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/x.git", "https://[::1]/x.git", "https://10.0.0.1:8443/x",
        "ssh://git@192.168.0.1:2222/x.git", "git@127.0.0.1:x.git", "https://2130706433/x",
        "https://[::ffff:10.0.0.1]/x", "https://localhost/x", "https://0x7f.1/x",
    ],
)  # fmt: skip
def test_no_spelling_of_an_internal_address_is_accepted(url: str) -> None:
    with (
        pytest.raises(InvalidRequestError, match="inside this network"),
        open_route(parse_place(url), (), ssh_options=()),
    ):
        raise AssertionError("there is no way")


@pytest.mark.parametrize(
    "host",
    ["%31%32%37.0.0.1", "%31%36%39.254.169.254", "fa\u00df.example", "a\\@b", "a%00", "[a", ""],
)
@pytest.mark.parametrize("form", ["http://{}:9/x", "https://{}/x", "ssh://git@{}:9/x", "git@{}:x"])
def test_an_ambiguous_host_is_refused(host: str, form: str) -> None:
    with pytest.raises(InvalidRequestError):
        check_url(form.format(host), allow_local=True)


@pytest.mark.parametrize("host", ["%31%32%37.0.0.1", "127.0.0.1", "fa\u00df.example", "localhost"])
def test_git_reaches_no_other_host(host: str, trap: Trap, monkeypatch: Any) -> None:
    """The check of the URL is left out here: the relay is what holds."""
    named(monkeypatch, "127.0.0.1")
    with open_route(ServerAddress("http", NAME, trap.port), HERE, ssh_options=()) as way:
        done = call_git(
            "ls-remote", f"http://{host}:{trap.port}/x", config=way.config,
            variables={"GIT_ALLOW_PROTOCOL": "http"}, check=False,
        )  # fmt: skip
    assert done.returncode
    assert way.relay is not None
    # A curl that cannot convert names does not even ask.
    assert "is not the repository's host" in way.relay.problem or not host.isascii()
    assert not trap.was_reached()


@pytest.mark.parametrize("host", ["%31%32%37.0.0.1", "127.0.0.1"])
def test_ssh_reaches_no_other_host(host: str, trap: Trap, monkeypatch: Any) -> None:
    named(monkeypatch, "127.0.0.1")
    with (
        socket.create_server(("127.0.0.1", 0)) as checked,
        open_route(
            ServerAddress("ssh", NAME, checked.getsockname()[1]), HERE, ssh_options=()
        ) as way,
    ):
        checked.settimeout(30)
        thread = threading.Thread(target=lambda: checked.accept()[0].close())
        thread.start()
        done = call_git(
            "ls-remote", f"ssh://git@{host}:{trap.port}/x",
            variables={"GIT_ALLOW_PROTOCOL": "ssh", **way.variables}, check=False,
        )  # fmt: skip
        thread.join()
    assert done.returncode
    assert not trap.was_reached()


def test_a_name_without_an_address_is_refused(tmp_path: Path, trap: Trap, monkeypatch: Any) -> None:
    """Its server may answer git with an inner address a moment later."""
    real, hosts = socket.getaddrinfo, []

    def resolve(host: str, *more: Any, **words: Any) -> Any:
        hosts.append(host)
        if host == NAME and hosts.count(NAME) == 1:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real("127.0.0.1" if host == NAME else host, *more, **words)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    repository = reader(f"http://{NAME}:{trap.port}/x", tmp_path / "m.git", allowed=())
    with pytest.raises(InvalidRequestError, match="cannot be resolved"):
        repository.fetch()
    with pytest.raises(InvalidRequestError, match="inside this network"):
        repository.fetch()
    assert not trap.was_reached()


def test_a_configured_proxy_is_used(served: tuple[str, GitServer, str], tmp_path: Path) -> None:
    _, server, sha = served
    paths: list[str] = []

    def pass_on(got: Got) -> tuple[int, bytes, dict[str, str]]:
        paths.append(got.path)
        return server(replace(got, path=got.path.removeprefix(f"http://{NAME}")))

    with serving(pass_on) as proxy:
        repository = reader(f"http://{NAME}/r.git", tmp_path / "m.git", proxy=proxy)
        repository.fetch()
    assert repository.resolve("main") == sha
    assert all(path.startswith(f"http://{NAME}/r.git/") for path in paths)


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://bot:s3@git.example:8443/a/b.git", "https://git.example:8443/a/b.git"),
        ("https://s3@git.example/a", "https://git.example/a"),
        ("ssh://git:s3@git.example:22/a", "ssh://git@git.example:22/a"),
        ("ssh://git@git.example/a", "ssh://git@git.example/a"),
        ("git@git.example:a/b.git", "git@git.example:a/b.git"),
        ("/srv/a@b", "/srv/a@b"),
    ],
)
def test_secrets_of_older_addresses_are_not_exported(url: str, clean: str) -> None:
    assert strip_secret(url) == clean
    assert _export_project(Project(repository_url=url))["repository_url"] == clean


@pytest.mark.parametrize("url", ["ssh://git@-oProxyCommand=id/x", "ssh://-oProxyCommand=id/x"])
def test_a_host_cannot_be_an_option_of_ssh(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        check_url(url, allow_local=False)


def test_output_and_time_of_a_program_are_limited(tmp_path: Path) -> None:
    shell = shutil.which("sh") or "sh"
    endless = [shell, "-c", "sleep 60 & while :; do echo y; done"]
    with pytest.raises(TooMuchError, match="more than 1 MiB"):
        run_bounded(endless, os.environ, 60, 1 << 20)
    # A child that holds the pipe open ends with it.
    with pytest.raises(TimeoutError):
        run_bounded([shell, "-c", "sleep 60 & sleep 60"], os.environ, 0.2)
    done = run_bounded([sys.executable, "-c", "bytearray(5 << 30)"], os.environ, 30)
    assert b"MemoryError" in done.stderr
    large = f"open({str(tmp_path / 'large')!r}, 'wb').write(bytes(3 << 20))"
    done = run_bounded([sys.executable, "-c", large], os.environ, 30, file_bytes=1 << 20)
    assert (done.returncode, (tmp_path / "large").stat().st_size) == (1, 1 << 20)
    done = run_bounded([sys.executable, "-c", "import sys; sys.exit('no')"], os.environ, 30)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (1, b"", b"no")
