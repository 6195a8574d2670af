"""Where git may be sent by an address that somebody typed, and how much it may bring."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.bounded import TooMuchError, run_bounded
from orchestrator.benchmarks.remotes import way_to
from orchestrator.benchmarks.repository import Repository, check_url
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import make_repository
from tests.support.http_servers import Got, serving

HERE = ("127.0.0.0/8",)
NAME = "git.pitwall.example"


class GitServer:
    """A repository over git's plain HTTP protocol; `asked` are the paths of all requests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.asked: list[str] = []

    def __call__(self, got: Got) -> tuple[int, bytes, dict[str, str]]:
        path = got.path.partition("?")[0]
        self.asked.append(path)
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


def test_it_asks_no_server_inside_unless_that_is_allowed(
    served: tuple[str, GitServer, str], tmp_path: Path
) -> None:
    url, server, sha = served
    with pytest.raises(InvalidRequestError, match="PITWALL_ALLOWED_INTERNAL_NETWORKS"):
        Repository(url, tmp_path / "no.git", allow_local=False).fetch()
    assert server.asked == []

    allowed = Repository(url, tmp_path / "yes.git", allow_local=False, allowed=HERE)
    allowed.fetch()
    assert allowed.resolve("main") == sha


def test_git_connects_to_the_address_that_was_checked(
    served: tuple[str, GitServer, str], tmp_path: Path, monkeypatch: Any
) -> None:
    named(monkeypatch, "127.0.0.1")
    url = served[0].replace("127.0.0.1", NAME)
    repository = Repository(url, tmp_path / "m.git", allow_local=False, allowed=HERE)
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
        Repository(f"{url}/r.git", tmp_path / "m.git", allow_local=False, allowed=HERE).fetch()
    assert server.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/x.git", "https://[::1]/x.git", "https://10.0.0.1:8443/x",
        "ssh://git@192.168.0.1:2222/x.git", "git@127.0.0.1:x.git", "https://2130706433/x",
        "https://[::ffff:10.0.0.1]/x", "https://localhost/x",
    ],
)  # fmt: skip
def test_no_form_of_an_inside_address_is_let_through(url: str) -> None:
    check_url(url, allow_local=False)
    with pytest.raises(InvalidRequestError, match="inside this network"):
        way_to(url, ())


def test_ssh_is_led_to_the_checked_address_and_asks_for_the_key_of_the_name() -> None:
    way = way_to("ssh://git@127.0.0.1:2222/x.git", HERE)
    assert way.ssh.endswith("-o HostName=127.0.0.1 -o 'HostKeyAlias=[127.0.0.1]:2222'")
    assert way.options == ()


@pytest.mark.parametrize("url", ["ssh://git@-oProxyCommand=id/x", "ssh://-oProxyCommand=id/x"])
def test_a_host_is_never_an_option_of_ssh(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        check_url(url, allow_local=False)


def test_what_a_program_writes_and_takes_is_bounded(tmp_path: Path) -> None:
    shell = shutil.which("sh") or "sh"
    endless = [shell, "-c", "sleep 60 & while :; do echo y; done"]
    with pytest.raises(TooMuchError, match="more than 1 MiB"):
        run_bounded(endless, os.environ, 60, 1 << 20)
    # A child that holds the pipe open ends with it.
    with pytest.raises(TimeoutError):
        run_bounded([shell, "-c", "sleep 60 & sleep 60"], os.environ, 0.2)
    done = run_bounded([sys.executable, "-c", "import sys; sys.exit('no')"], os.environ, 30)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (1, b"", b"no")
