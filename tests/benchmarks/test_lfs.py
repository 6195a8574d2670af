"""The files of Git LFS of a commit are fetched by the fetch worker, and their server is not
trusted."""

import io
import os
import socket
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks import access, lfs_files, lfs_server
from orchestrator.benchmarks.build_sources import read_submodules
from orchestrator.benchmarks.fetch_requests import load_fetch
from orchestrator.benchmarks.git_access import Access
from orchestrator.benchmarks.lfs_pointers import LfsPointer
from orchestrator.benchmarks.lfs_server import Download, LfsServer, find_server
from orchestrator.benchmarks.lfs_store import IncompleteObject
from orchestrator.benchmarks.mirrors import open_pack_file
from orchestrator.benchmarks.models import BuildSource, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.refs import get_mirror_path, open_repository
from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import Personas, commit_files, git, make_repository
from tests.support.fetches import fetch_now, read_source
from tests.support.git_servers import TOKEN, read_password
from tests.support.lfs import (
    OBJECT_SECRET,
    LfsStandIn,
    build_pointer,
    commit_lfs_files,
    hash_content,
    serving_lfs,
    store_objects,
)
from tests.support.submodules import commit_submodules

pytestmark = pytest.mark.django_db

MODEL, WORDS = b"m" * 5000, b"w" * 300
OID = hash_content(MODEL)


@pytest.fixture
def served(tmp_path: Path, data_dir: Path, settings: Any) -> Path:
    """A folder that the server serves, with the repositories `public/app` and `team/app`."""
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.1/32"]
    for name in ("public/app", "team/app"):
        make_repository(tmp_path / "served" / name, [{"main.txt": "main"}])
    return tmp_path / "served"


@pytest.fixture
def app(served: Path) -> Path:
    return served / "public" / "app"


@pytest.fixture
def server(served: Path) -> Iterator[LfsStandIn]:
    with serving_lfs(served, MODEL) as server:
        yield server


def make_project(personas: Personas, url: str | Path) -> Project:
    project = create_project(member=personas.alice, slug="app", name="", repository_url=str(url))
    fetch_now(project)
    return project


def read_problem(personas: Personas, server: LfsStandIn, sha: str) -> str:
    """Return why a commit of `public/app` cannot be measured; nothing of its objects is left."""
    project = make_project(personas, f"{server.url}/public/app")
    source = read_source(project, sha)
    assert not source.has_lfs_files
    assert not load_fetch(project).error
    assert list_objects(project) == []
    return source.problem


def list_objects(project: Project) -> list[str]:
    """Return the names of the objects in the mirror, also of incomplete ones."""
    folder = get_mirror_path(project) / "lfs"
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def read_archive(
    project: Project, source: BuildSource, folder: Path
) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of the files that a host gets, by path."""
    with open_pack_file(folder) as file:
        trees = read_submodules(source)
        open_repository(project).lfs.archive(source.commit.sha, trees, file)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:") as archive:
            return {
                member.name: (member.mode, archive.extractfile(member).read())  # type: ignore[union-attr]
                for member in archive
            }


def test_files_of_a_commit_and_its_submodules_are_fetched_once(
    personas: Personas, served: Path, app: Path, server: LfsStandIn, tmp_path: Path
) -> None:
    server.add(WORDS)
    make_repository(served / "public" / "lib", [{"lib.txt": "lib"}])
    lib = commit_lfs_files(served / "public" / "lib", {"words.txt": WORDS})
    commit_lfs_files(app, {"a/model.bin": MODEL, "b/model.bin": MODEL}, programs=("b/model.bin",))
    sha = commit_submodules(app, {"vendor/lib": ("../lib", lib)}, number=80)
    project = make_project(personas, f"{server.url}/public/app")
    source = read_source(project, sha)
    assert (source.problem, source.has_lfs_files) == ("", True)
    assert read_archive(project, source, tmp_path / "data") == {
        "a/model.bin": (0o644, MODEL),
        "b/model.bin": (0o755, MODEL),
        "vendor/lib/words.txt": (0o644, WORDS),
    }
    assert len(server.downloads) == 2
    assert {got.headers["authorization"] for got in server.downloads} == {f"Bearer {OBJECT_SECRET}"}
    # They count for the mirror, and are fetched again only if it was lost.
    assert load_fetch(project).mirror_bytes >= 8192
    assert read_source(project, sha).has_lfs_files
    assert len(server.downloads) == 2
    get_mirror_path(project).rename(tmp_path / "lost")
    assert read_source(project, sha).has_lfs_files
    assert len(server.downloads) == 4
    # A commit without pointers asks for nothing.
    plain = read_source(project, git(app, "rev-list", "--max-parents=0", "HEAD"))
    assert (plain.problem, plain.has_lfs_files, plain.requested_at) == ("", False, None)


def answer_with(status: int, body: bytes, **headers: str) -> dict[str, Any]:
    return {"answer_object": lambda _: (status, body, headers)}


def change_object(**fields: Any) -> dict[str, Any]:
    return {"change": lambda answer: answer["objects"][0].update(fields)}


WRONG = {
    "content": (answer_with(200, b"x" * 5000), "sent other content than the pointer states"),
    "too long": (answer_with(200, b"m" * 6000), "6000 bytes instead of the 5,000 bytes"),
    "too short": (answer_with(200, b"m" * 4000), "4000 bytes instead of the 5,000 bytes"),
    "endless": (
        answer_with(
            200, b"1800\r\n" + b"m" * 0x1800,
            **{"Transfer-Encoding": "chunked", "Content-Length": "5000"},
        ),
        "sent more than the 5,000 bytes",
    ),
    "no file": (answer_with(404, b""), "its server answered with HTTP status 404"),
    "redirects": (answer_with(302, b"", Location="?x"), "more than 3 redirects"),
    "a local file": (answer_with(302, b"", Location="file:///etc/passwd"), "an invalid address"),
    "missing": (
        change_object(error={"code": 404, "message": "Object does not exist"}),
        "the LFS server does not have it (Object does not exist)",
    ),
    "refused": (change_object(error={"code": 422}), "refuses it: no reason given"),
    "other size": (change_object(size=4000), "another size than the 5,000 bytes"),
    "no action": (change_object(actions={}), "names no valid address"),
    "no address": (change_object(actions={"download": {"href": 5}}), "names no valid address"),
    "bad address": (change_object(actions={"download": {"href": "ftp://x"}}), "an invalid address"),
    "bad header": (
        change_object(actions={"download": {"href": "http://x", "header": {"A": "x\r\nB: y"}}}),
        "names no valid address",
    ),
    "no answer": ({"change": lambda _: {"objects": []}}, "did not answer for it"),
    "no objects": ({"change": lambda _: [1]}, "did not answer as the batch API"),
    "other transfer": ({"change": lambda each: {**each, "transfer": "tus"}}, "other than basic"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_is_a_problem_of_its_commit(
    personas: Personas, app: Path, server: LfsStandIn, case: str
) -> None:
    changes, problem = WRONG[case]
    for name, value in changes.items():
        setattr(server, name, value)
    shown = read_problem(personas, server, commit_lfs_files(app, {"model.bin": MODEL}))
    assert "the content of model.bin, which is in Git LFS, cannot be fetched" in shown
    assert problem in shown


def test_all_missing_files_are_named(personas: Personas, app: Path, server: LfsStandIn) -> None:
    lost = {f"lost-{number}.bin": bytes(200 + number) for number in range(7)}
    sha = commit_lfs_files(app, {"model.bin": MODEL, **lost})
    problem = read_problem(personas, server, sha)
    assert "of lost-0.bin, lost-1.bin, lost-2.bin, lost-3.bin, lost-4.bin and 2 more, " in problem
    assert server.downloads == []


def test_a_pointer_with_an_extension_is_a_problem_of_its_commit(
    personas: Personas, app: Path, server: LfsStandIn
) -> None:
    first, *rest = build_pointer(MODEL).splitlines(keepends=True)
    text = "".join([first, f"ext-0-packed sha256:{'ab' * 32}\n", *rest])
    problem = read_problem(personas, server, commit_files(app, {"model.bin": text}, 70))
    assert "cannot be read: model.bin. Expected version, oid and size" in problem
    assert server.batches == []


@pytest.mark.parametrize("limit", ["host", "mirror", "team", "number"])
def test_files_that_exceed_a_limit_are_not_fetched(
    personas: Personas, app: Path, settings: Any, monkeypatch: pytest.MonkeyPatch,
    server: LfsStandIn, limit: str,
) -> None:  # fmt: skip
    large = os.urandom(3 << 20)
    server.add(large)
    sha = commit_lfs_files(app, {"large.bin": large, "model.bin": MODEL})
    words = {
        "host": "the largest is large.bin (3.00 MiB)",
        "mirror": "PITWALL_GIT_MIRROR_LIMIT_MIB",
        "team": "mirrors_mib",
        "number": "has 2 files of Git LFS",
    }[limit]
    if limit == "host":
        settings.GIT_PACKED_LIMIT_MIB = 2
    elif limit == "mirror":
        settings.GIT_MIRROR_LIMIT_MIB = 2
    elif limit == "team":
        settings.QUOTAS = {**settings.QUOTAS, "mirrors_mib": 2}
    else:
        monkeypatch.setattr(lfs_files, "MOST_FILES", 1)
    assert words in read_problem(personas, server, sha)
    assert server.downloads == []


@pytest.mark.parametrize("way", ["action", "redirect", "lfsconfig"])
def test_no_internal_address_is_reached(
    personas: Personas, app: Path, server: LfsStandIn, way: str
) -> None:
    with socket.create_server(("127.0.0.2", 0)) as listener:
        listener.setblocking(False)
        address = f"http://127.0.0.2:{listener.getsockname()[1]}/x"
        if way == "action":
            change = change_object(actions={"download": {"href": address}})
            server.change = change["change"]
        elif way == "redirect":
            server.answer_object = answer_with(302, b"", Location=address)["answer_object"]
        else:
            (app / ".lfsconfig").write_text(f"[lfs]\n\turl = {address}\n")
        problem = read_problem(personas, server, commit_lfs_files(app, {"model.bin": MODEL}))
        assert "127.0.0.2, an address inside this network" in problem
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_the_token_goes_to_the_batch_api_of_the_project_only(
    personas: Personas, served: Path, server: LfsStandIn, tmp_path: Path
) -> None:
    app = served / "team" / "app"
    sha = commit_lfs_files(app, {"model.bin": MODEL})
    with serving_lfs(tmp_path / "elsewhere", MODEL) as stranger:
        (app / ".lfsconfig").write_text(f"[lfs]\n\turl = {stranger.url}/store\n")
        diverted = commit_lfs_files(app, {"model.bin": MODEL}, number=71)
        # The server stores its objects elsewhere, as some forges do.
        server.answer_object = lambda got: (302, b"", {"Location": f"{stranger.url}{got.path}"})
        project = make_private_project(personas, server)
        assert read_source(project, sha).problem == ""
        get_mirror_path(project).joinpath("lfs").rename(tmp_path / "lost")
        assert read_source(project, diverted).problem == ""
    assert [read_password(got) for got in server.batches] == [TOKEN]
    assert [read_password(got) for got in stranger.batches] == [""]
    assert server.downloads[0].headers["authorization"] == f"Bearer {OBJECT_SECRET}"
    redirected, given_out = stranger.downloads
    assert "authorization" not in redirected.headers
    assert given_out.headers["authorization"] == f"Bearer {OBJECT_SECRET}"


def test_a_private_server_without_a_token_says_what_to_do(
    personas: Personas, served: Path, server: LfsStandIn
) -> None:
    app = served / "team" / "app"
    (app / ".lfsconfig").write_text(f"[lfs]\n\turl = {server.url}/team/lfs.git/info/lfs\n")
    own = commit_lfs_files(app, {"model.bin": MODEL})
    (app / ".lfsconfig").write_text("[lfs]\n\turl = git@127.0.0.1:team/lfs.git\n")
    over_ssh = commit_lfs_files(app, {"model.bin": WORDS}, number=71)
    project = make_private_project(personas, server)
    assert read_source(project, own).problem == ""
    assert "use an https URL" in read_source(project, over_ssh).problem
    access.remove_credential(member=personas.alice, project=project)
    # The mirror has the object, and another job does not ask for it again.
    assert read_source(project, own).problem == ""
    remote = Remote(url=f"{server.url}/team/app", allow_local=False, allowed=["127.0.0.1/32"])
    with pytest.raises(InvalidRequestError, match=r"401 \(Credentials needed\); if the repository"):
        find_server(remote, "").find_downloads([LfsPointer(OID, 5000)], time.monotonic() + 10)


def make_private_project(personas: Personas, server: LfsStandIn) -> Project:
    project = create_project(
        member=personas.alice, slug="app", name="", repository_url=f"{server.url}/team/app"
    )
    access.save_token(member=personas.alice, project=project, token=TOKEN)
    fetch_now(project)
    return project


def test_an_interrupted_object_continues(personas: Personas, app: Path, server: LfsStandIn) -> None:
    server.cut_after = 1000
    sha = commit_lfs_files(app, {"model.bin": MODEL})
    project = make_project(personas, f"{server.url}/public/app")
    problem = read_source(project, sha).problem
    assert "the connection ended after 3,000 of 5,000 bytes" in problem
    assert list_objects(project) == [OID]
    server.cut_after = None
    assert read_source(project, sha).problem == ""
    ranges = [got.headers.get("range") for got in server.downloads]
    assert ranges == [None, "bytes=1000-", "bytes=2000-", "bytes=3000-"]
    content = get_mirror_path(project) / "lfs" / "objects" / OID[:2] / OID[2:4] / OID
    assert content.read_bytes() == MODEL


def test_a_slow_object_is_cut_off(
    personas: Personas, app: Path, server: LfsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lfs_server, "SLOW_S", 1e-9)
    monkeypatch.setattr(lfs_server, "SLOW_BYTES_S", 10**15)
    server.cut_after = 1000  # So that no attempt completes it.
    sha = commit_lfs_files(app, {"model.bin": MODEL})
    problem = read_source(make_project(personas, f"{server.url}/public/app"), sha).problem
    assert "bytes a second arrived" in problem
    assert len(server.downloads) == lfs_files.TRIES


def test_objects_of_a_local_repository_are_copied(
    personas: Personas, app: Path, tmp_path: Path
) -> None:
    sha = commit_lfs_files(app, {"model.bin": MODEL, "words.txt": WORDS})
    store_objects(app / ".git", MODEL)
    project = make_project(personas, app)
    problem = read_source(project, sha).problem
    assert "content of words.txt" in problem
    assert "git lfs fetch --all" in problem
    store_objects(app / ".git", WORDS)
    source = read_source(project, sha)
    assert source.problem == ""
    files = read_archive(project, source, tmp_path / "data")
    assert files == {"model.bin": (0o644, MODEL), "words.txt": (0o644, WORDS)}


@pytest.mark.parametrize(
    ("repository", "lfs_url", "expected"),
    [
        ("https://host/team/app", "", "https://host/team/app.git/info/lfs"),
        ("https://host:8443/app.git/", "", "https://host:8443/app.git/info/lfs"),
        ("git@host:team/app.git", "", "https://host/team/app.git/info/lfs"),
        ("ssh://git@host:2222/team/app", "", "https://host/team/app.git/info/lfs"),
        ("https://host/team/app", "https://lfs.host/team", "https://lfs.host/team"),
    ],
)
def test_the_address_of_a_server_is_that_of_git_lfs(
    repository: str, lfs_url: str, expected: str
) -> None:
    access = Access(token=TOKEN)
    remote = Remote(url=repository, allow_local=False, access=lambda: access)
    server = find_server(remote, lfs_url)
    assert server.url == expected
    assert bool(server.headers) == (expected.startswith("https://host") and "@" not in repository)
    assert ("change the address of the project to https://" in server.locked) == ("@" in repository)


@pytest.mark.parametrize("url", ["file:///etc", "https://me:pw@host/x", "/etc", "ssh://host/x"])
def test_an_address_of_another_kind_is_refused(url: str) -> None:
    remote = Remote(url="https://host/team/app", allow_local=True)
    with pytest.raises(InvalidRequestError, match=r"lfs\.url in \.lfsconfig"):
        find_server(remote, url)


def test_objects_of_an_encrypted_server_are_encrypted() -> None:
    pointer = LfsPointer(OID, 5000)
    server = LfsServer(url="https://host/lfs", locked="", allowed=["127.0.0.1/32"])
    with pytest.raises(InvalidRequestError, match="an address for it without encryption"):
        server.download(
            Download("http://127.0.0.1:1/x", {}),
            IncompleteObject(io.BytesIO(), pointer),
            time.monotonic() + 10,
            lambda: None,
        )
