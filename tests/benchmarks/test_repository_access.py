"""Each project opens its repository with its own credential, and knows its server by its key."""

import base64
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import AuditEntry, Role
from orchestrator.benchmarks import access, git_calls, host_keys
from orchestrator.benchmarks.git_access import (
    Access,
    HostKeyChangedError,
    prepare_access,
    remove_stale_files,
)
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import change_project
from orchestrator.benchmarks.refs import get_mirror_path, open_repository
from orchestrator.benchmarks.remotes import open_route, parse_place
from orchestrator.core.errors import (
    BrokenSealError,
    ConflictError,
    InvalidRequestError,
    PermissionRefusedError,
)
from orchestrator.transport.address import HostKey
from orchestrator.transport.keys import generate_key
from tests.support.factories import Personas, add_member, git, make_repository
from tests.support.http_servers import Got, serving
from tests.support.programs import program
from tests.support.sshd import SshServer, sshd

__all__ = ["sshd"]

pytestmark = pytest.mark.django_db

TOKEN = "glpat-s3cret/+:@"


@pytest.fixture(autouse=True)
def private_repository(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.0/8"]
    # Repositories of all tests are kept in the usual folder for temporary files.
    make_repository(tmp_path / "origin", [{"a.txt": "one"}])
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


def create_project_at(member: Member, url: str) -> Project:
    return Project.objects.create(
        team=member.team, slug="private", name="Private", repository_url=url
    )


@pytest.fixture
def origin(tmp_path: Path) -> str:
    return git(tmp_path / "origin", "rev-parse", "main").strip()


@pytest.fixture
def address(sshd: SshServer, origin: str, tmp_path: Path) -> str:
    program("sshd")  # The replacement for machines without it does not serve git.
    (tmp_path / "ssh-server" / "authorized_keys").write_text("")
    return f"ssh://{sshd.user}@{sshd.host}:{sshd.port}{tmp_path / 'origin'}"


def authorize(tmp_path: Path, *public_keys: str) -> None:
    """What somebody does on the forge with the public half."""
    (tmp_path / "ssh-server" / "authorized_keys").write_text("\n".join(public_keys) + "\n")


@pytest.fixture
def agent(tmp_path: Path, sshd: SshServer) -> Iterator[str]:
    """An agent of the server's own account with a key that opens everything."""
    socket = str(tmp_path / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    key = tmp_path / "own-key"
    key.touch(mode=0o600)
    key.write_text(sshd.client_private_key)
    try:
        while not os.path.exists(socket):
            assert process.poll() is None
        add = ["ssh-add", "-q", str(key)]
        subprocess.run(add, env={**os.environ, "SSH_AUTH_SOCK": socket}, check=True)
        yield socket
    finally:
        process.terminate()
        process.wait()


def test_a_team_cannot_use_the_key_of_another_team(
    personas: Personas, address: str, origin: str, tmp_path: Path
) -> None:
    ours = create_project_at(personas.alice, address)
    theirs = create_project_at(personas.mallory, address)
    row = access.generate_deploy_key(member=personas.alice, project=ours)
    authorize(tmp_path, row.public_key)

    open_repository(ours).fetch()
    assert open_repository(ours).resolve("main") == origin

    for _ in range(2):
        with pytest.raises(InvalidRequestError, match="Permission denied"):
            open_repository(theirs).fetch()
        access.generate_deploy_key(member=personas.mallory, project=theirs)
    assert not get_mirror_path(theirs).exists()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_ssh_agent_and_keys_of_the_account_are_not_used(
    personas: Personas,
    address: str,
    origin: str,
    agent: str,
    sshd: SshServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    authorize(tmp_path, sshd.client_public_key)
    monkeypatch.setenv("SSH_AUTH_SOCK", agent)
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    plain = "ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    by_itself = subprocess.run(
        ["git", "ls-remote", address], env={**os.environ, "GIT_SSH_COMMAND": plain},
        capture_output=True, check=True,
    )  # fmt: skip
    assert origin.encode() in by_itself.stdout

    project = create_project_at(personas.alice, address)
    with pytest.raises(InvalidRequestError, match="Permission denied"):
        open_repository(project).fetch()


def test_ssh_reads_no_file_of_an_account(personas: Personas, address: str) -> None:
    """`ssh -G` prints what ssh would use."""
    place = parse_place(address)
    with (
        prepare_access(
            access.load_git_access(create_project_at(personas.alice, address)), place
        ) as prepared,
        open_route(place, ["127.0.0.0/8"], ssh_options=prepared.ssh_options) as way,
    ):
        command = [*shlex.split(way.variables["GIT_SSH_COMMAND"]), "-G", place.host]
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line for line in shown.stdout.splitlines() if "/.ssh/" in line] == []
    assert "identityagent none" in shown.stdout


def test_the_host_key_is_pinned_and_another_one_is_refused(
    personas: Personas, address: str, sshd: SshServer, tmp_path: Path
) -> None:
    project = create_project_at(personas.alice, address)
    row = access.generate_deploy_key(member=personas.alice, project=project)
    authorize(tmp_path, row.public_key)
    open_repository(project).fetch()
    shown = HostKey.parse(sshd.host_key)
    assert access.load_repository_access(project).host_key == shown.line
    assert AuditEntry.objects.filter(action="repository.host_key_pinned").count() == 1

    other = HostKey.parse(generate_key().public_openssh)
    type(row).objects.filter(project=project).update(host_key=other.line)
    with pytest.raises(HostKeyChangedError, match=re.escape(shown.fingerprint_sha256)):
        open_repository(project).fetch()
    row = access.load_repository_access(project)
    assert (row.host_key, row.offered_host_key) == (other.line, shown.line)

    def accept(member: Member, key: HostKey) -> None:
        fingerprint = key.fingerprint_sha256
        host_keys.accept_host_key(member=member, project=project, fingerprint=fingerprint)

    with pytest.raises(PermissionRefusedError):
        accept(personas.bob, shown)
    with pytest.raises(ConflictError):
        accept(personas.alice, other)
    accept(personas.alice, shown)
    assert access.load_repository_access(project).offered_host_key == ""
    open_repository(project).fetch()


def test_an_offered_host_key_is_dropped_when_the_pinned_one_returns(
    personas: Personas, address: str, tmp_path: Path
) -> None:
    project = create_project_at(personas.alice, address)
    row = access.generate_deploy_key(member=personas.alice, project=project)
    authorize(tmp_path, row.public_key)
    open_repository(project).fetch()
    pinned = access.load_repository_access(project).host_key

    other = HostKey.parse(generate_key().public_openssh)
    host_keys.record_offered_key(project, other.line)
    with pytest.raises(PermissionRefusedError):
        host_keys.reject_offered_key(member=personas.bob, project=project)
    host_keys.reject_offered_key(member=personas.alice, project=project)
    with pytest.raises(ConflictError, match="no other host key"):
        host_keys.reject_offered_key(member=personas.alice, project=project)

    host_keys.record_offered_key(project, other.line)
    open_repository(project).fetch()
    row = access.load_repository_access(project)
    assert (row.host_key, row.offered_host_key, row.offered_at) == (pinned, "", None)
    dropped = AuditEntry.objects.filter(action="repository.host_key_dropped")
    assert [other.fingerprint_sha256 in each.subject for each in dropped] == [True, True]


def test_after_forgetting_the_pinned_host_key_the_next_must_be_accepted(
    personas: Personas, address: str, tmp_path: Path
) -> None:
    project = create_project_at(personas.alice, address)
    row = access.generate_deploy_key(member=personas.alice, project=project)
    authorize(tmp_path, row.public_key)
    open_repository(project).fetch()
    shown = access.load_repository_access(project).host_fingerprint
    with pytest.raises(PermissionRefusedError):
        host_keys.forget_host_key(member=personas.bob, project=project)
    host_keys.forget_host_key(member=personas.alice, project=project)
    for _ in range(2):
        with pytest.raises(HostKeyChangedError, match="none is pinned since a maintainer removed"):
            open_repository(project).fetch()
    row = access.load_repository_access(project)
    assert (row.host_key, row.offered_fingerprint) == ("", shown)
    with pytest.raises(ConflictError, match="no host key is pinned"):
        host_keys.forget_host_key(member=personas.alice, project=project)
    host_keys.accept_host_key(member=personas.alice, project=project, fingerprint=shown)
    open_repository(project).fetch()
    assert access.load_repository_access(project).host_fingerprint == shown


def test_no_secret_is_in_a_command_or_environment(
    personas: Personas, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = git_calls.run_bounded

    def watch(argv: Any, environment: Any, *more: Any, **words: Any) -> Any:
        files = [path for path in (tmp_path / "tmp").rglob("*") if path.is_file()]
        assert all(path.stat().st_mode & 0o077 == 0 for path in files)
        seen.extend([*argv, *environment.values()])
        return real(argv, environment, *more, **words)

    monkeypatch.setattr(git_calls, "run_bounded", watch)
    project = create_project_at(personas.alice, address)
    row = access.generate_deploy_key(member=personas.alice, project=project)
    authorize(tmp_path, row.public_key)
    open_repository(project).fetch()
    web = create_project_at(personas.mallory, "http://127.0.0.1:9/x.git")
    access.save_token(member=personas.mallory, project=web, token=TOKEN)
    with pytest.raises(InvalidRequestError):
        open_repository(web).fetch()
    assert seen
    assert not [text for text in seen if "PRIVATE KEY" in text or "s3cret" in text]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_secret_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    place = parse_place("git@github.com:a/b.git")
    stale, young = (tmp_path / "tmp" / f"pitwall-git-{name}" for name in ("stale", "young"))
    for folder in (stale, young):
        folder.mkdir()
        (folder / "key").write_text("secret")
    (stale / "lock").touch()
    with prepare_access(Access(private_key="secret"), place) as prepared:
        used = prepared.known_hosts.parent
        for folder in (stale, used):
            os.utime(folder, (1, 1))
        remove_stale_files()
        assert set((tmp_path / "tmp").iterdir()) == {young, used}


class PrivateServer:
    """A repository over git's plain HTTP protocol, for clients with the token."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.users: set[str] = set()

    def __call__(self, got: Got) -> tuple[int, bytes, dict[str, str]]:
        scheme, _, given = got.headers.get("authorization", "").partition(" ")
        user, _, password = base64.b64decode(given).decode().partition(":")
        if scheme != "Basic" or password != TOKEN:
            return 401, b"", {"WWW-Authenticate": 'Basic realm="git"'}
        self.users.add(user)
        file = self._folder / got.path.partition("?")[0].lstrip("/")
        return (200, file.read_bytes(), {}) if file.is_file() else (404, b"", {})


def test_a_token_opens_a_repository_over_http(
    personas: Personas, origin: str, tmp_path: Path
) -> None:
    bare = tmp_path / "served" / "r.git"
    subprocess.run(["git", "clone", "-q", "--bare", tmp_path / "origin", bare], check=True)
    subprocess.run(["git", "--git-dir", bare, "update-server-info"], check=True)
    server = PrivateServer(bare.parent)
    with serving(server) as url:
        project = create_project_at(personas.alice, f"{url}/r.git")
        with pytest.raises(InvalidRequestError, match=r"Username.*Repository access"):
            open_repository(project).fetch()
        access.save_token(member=personas.alice, project=project, token=TOKEN)
        open_repository(project).fetch()
        access.save_token(member=personas.alice, project=project, token=TOKEN, username="bot")
        open_repository(project).fetch()
        access.remove_credential(member=personas.alice, project=project)
        with pytest.raises(InvalidRequestError, match=r"Username.*Repository access"):
            open_repository(project).fetch()
    assert open_repository(project).resolve("main") == origin
    assert server.users == {"x-access-token", "bot"}


def test_a_credential_must_match_the_address(personas: Personas) -> None:
    ssh = create_project_at(personas.alice, "git@github.com:a/b.git")
    web = create_project_at(personas.mallory, "https://github.com/a/b.git")
    with pytest.raises(InvalidRequestError, match="https://"):
        access.save_token(member=personas.alice, project=ssh, token=TOKEN)
    with pytest.raises(InvalidRequestError, match="git@host:path"):
        access.generate_deploy_key(member=personas.mallory, project=web)
    with pytest.raises(InvalidRequestError, match="ASCII"):
        access.save_token(member=personas.mallory, project=web, token="two words")
    for host in ("git.lan", "10.1.2.3"):
        access.save_token(member=personas.mallory, project=web, token=TOKEN)
        Project.objects.filter(pk=web.pk).update(repository_url=f"http://{host}/a/b.git")
        web.refresh_from_db()
        with pytest.raises(InvalidRequestError, match="over https only"):
            access.save_token(member=personas.mallory, project=web, token=TOKEN)
        # One that was stored by an older version.
        with (
            pytest.raises(InvalidRequestError, match="over https only"),
            prepare_access(access.load_git_access(web), parse_place(web.repository_url)),
        ):
            raise AssertionError("the token would be sent")
        Project.objects.filter(pk=web.pk).update(repository_url="https://github.com/a/b.git")
        web.refresh_from_db()
    with pytest.raises(PermissionRefusedError):
        access.generate_deploy_key(member=personas.bob, project=ssh)


def test_a_token_is_not_sent_to_another_server(personas: Personas) -> None:
    dora = add_member(personas.alice, "dora", Role.MEMBER)
    project = create_project_at(personas.alice, "https://github.com/a/b.git")

    def change(member: Member, url: str) -> None:
        change_project(
            member=member, project=project, name="A", repository_url=url, default_branch="main"
        )
        project.refresh_from_db()

    with pytest.raises(PermissionRefusedError):
        change(dora, "https://github.com/a/c.git")
    change(personas.alice, "https://github.com/a/c.git")
    stale = Project.objects.get(pk=project.pk)
    access.save_token(member=personas.alice, project=project, token=TOKEN)
    with pytest.raises(PermissionRefusedError):
        change(dora, "https://attacker.example/a/c.git")
    change(personas.alice, "https://GitHub.com/a/b.git")
    assert access.load_git_access(project).token == TOKEN
    # A worker that began before has the address of before, and gets nothing.
    assert access.load_git_access(stale).token == ""
    with pytest.raises(ConflictError):
        access.save_token(member=personas.alice, project=stale, token=TOKEN)
    for url in ("https://attacker.example/a/c.git", "https://github.com:8443/a/b.git"):
        access.save_token(member=personas.alice, project=project, token=TOKEN)
        change(personas.alice, url)
        assert access.load_git_access(project).token == ""


def test_secrets_in_older_addresses_are_sealed_and_removed(
    personas: Personas, settings: Any
) -> None:
    token = create_project_at(personas.alice, "https://bot:s%2F3@git.example:8443/a/b.git")
    ssh = create_project_at(personas.mallory, "ssh://git:s3@git.example/a/b.git")
    settings.SECRET_KEY_IS_GIVEN = False
    with pytest.raises(BrokenSealError):
        access.move_secrets_out_of_urls()
    token.refresh_from_db()
    assert "s%2F3" in token.repository_url

    settings.SECRET_KEY_IS_GIVEN = True
    access.move_secrets_out_of_urls()
    for each in (token, ssh):
        each.refresh_from_db()
    assert token.repository_url == "https://git.example:8443/a/b.git"
    assert ssh.repository_url == "ssh://git@git.example/a/b.git"
    opened = access.load_git_access(token)
    assert (opened.username, opened.token) == ("bot", "s/3")
    assert "s/3" not in repr(opened)
    assert not access.find_projects_with_secrets().exists()
