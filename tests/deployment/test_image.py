"""The image's own commands, run on its own files as its own user, do what a deployment needs.

Where no engine is, this is as near as one gets: see docker/README.md for what it leaves out.
"""

import http.client
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from django.conf import settings
from django.urls import reverse

from orchestrator.accounts.models import User
from orchestrator.archives.database.clients import find_folder, read_server
from orchestrator.archives.version import read_pitwall_version
from orchestrator.core.ids import new_id
from orchestrator.fleet.models import Host
from tests.deployment.forwards import forwarded
from tests.deployment.image import CHECKOUT, Image, compose, laid_out, stages, words
from tests.support.databases import as_our_database, empty_database
from tests.support.engine import own_database_url
from tests.support.factories import make_personas
from tests.support.html_pages import values
from tests.support.programs import program
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="lays out a root file system: needs root"),
]

PATIENCE_S = 60
KEY = "of-the-image's-own-test-" + "0123456789abcdefghijklmnop"


@pytest.fixture
def image() -> Iterator[Image]:
    """With PostgreSQL and Redis by TCP as in compose, since sockets are for their owners only."""
    with laid_out("pitwall", ["/data", "/opt/pitwall/static"]) as image, ExitStack() as stack:
        database = stack.enter_context(forwarded(own_database_url()))
        redis = stack.enter_context(forwarded(settings.CELERY_BROKER_URL))
        image.environment |= {
            "DATABASE_URL": database,
            "REDIS_URL": redis,
            "PITWALL_SECRET_KEY": KEY,
            "PITWALL_QUEUE": f"test-{new_id()}",
        }
        yield image


@pytest.fixture
def collected(image: Image) -> Image:
    """After the build's own RUN line, for which alone the static files' folder can be written."""
    (line,) = [run for run in image.stage.all("RUN") if "collectstatic" in run]
    command = line.partition("&&")[0].split()
    assert command == ["python", "manage.py", "collectstatic", "--noinput"]
    secretless = {"PITWALL_SECRET_KEY": "", "DATABASE_URL": "", "REDIS_URL": ""}
    done = image.run(*command, env=secretless)
    assert done.returncode == 0, done.stderr
    at = next(i for i, mount in enumerate(image.mounts) if mount[2] == "/opt/pitwall/static")
    image.mounts[at] = ("ro", *image.mounts[at][1:])
    return image


def test_the_image_serves_and_works_from_a_read_only_tree(collected: Image) -> None:
    migrate = collected.run(*compose()["services"]["migrate"]["command"])
    assert migrate.returncode == 0, migrate.stderr
    _assert_hardened(collected)
    port = _free_port()
    web = [word.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for word in _command("web")]
    with ExitStack() as stack:
        stack.enter_context(_running(collected, [*web, "--workers", "1"]))
        for name in ("worker", "background", "beat"):
            stack.enter_context(_running(collected, _command(name)))
        checks = {
            "web": [*words(collected.stage.all("HEALTHCHECK")[0]), f"http://127.0.0.1:{port}/healthz"],
            **{name: compose()["services"][name]["healthcheck"]["test"][1:]
               for name in ("worker", "background", "beat")},
        }  # fmt: skip
        for name, check in checks.items():
            wait_until(
                lambda check=check: collected.run(*check).returncode == 0, f"not there: {name}"
            )
        wait_until(lambda: _get(port, "/readyz?engine")[0] == 200, "the engine is not ready")
        _assert_pages(port)
        _assert_ticks(port)
    ill = collected.run(*checks["web"])
    assert ill.returncode == 1, "a web process that ended is ill"
    gone = collected.run(*checks["worker"])
    assert gone.returncode == 1, "a worker that ended is ill"


def test_the_demo_adds_the_sample_host(image: Image) -> None:
    """By the words of compose.yaml, up to the host; what it measures then, `make demo` shows."""
    program("sshd")
    ssh = _free_port()
    with laid_out("agent", ["/home/bench", "/keys"]) as agent:
        config = agent.root / "opt/agent/sshd_config"
        config.write_text(config.read_text().replace("Port 2222", f"Port {ssh}"))
        keys = agent.find_folder("/keys")
        image.bind("rw", str(keys), "/keys")
        with _running(agent, words(agent.stage.all("CMD")[0])):
            check = words(agent.stage.all("HEALTHCHECK")[0])
            check[-1] = check[-1].replace("2222", str(ssh))
            wait_until(lambda: agent.run(*check).returncode == 0, "the sshd does not answer")
            for _ in range(2):
                seeded = _seed(image, ssh)
                assert seeded["host"] == "sample-host"
        mode = (keys / "authorized_keys").stat().st_mode
    assert mode & 0o022 == 0, "nobody else adds a key"
    host = Host.objects.get(name="sample-host")
    assert (host.state, host.login, host.transport) == ("ready", "bench", "ssh")
    assert host.host_key.startswith("ssh-ed25519 ")
    assert host.snapshots.count() == 2


def test_a_backup_is_made_and_restored_by_the_documented_commands(image: Image) -> None:
    backup, restore = _documented_backups()
    make_personas()
    image.user = "12345"
    folder = image.root.parent / "backups"
    folder.mkdir()
    os.chown(folder, int(image.user), int(image.user))
    image.bind("rw", str(folder), "/backups")
    # Debian's package, which this machine may have in another version, or not at all.
    programs = find_folder(read_server())
    image.bind("ro", str(programs.parent), "/opt/postgresql")
    image.environment["PITWALL_PG_BIN"] = f"/opt/postgresql/{programs.name}"
    made = image.run(*backup)
    assert made.returncode == 0, made.stderr
    assert (
        f"Pitwall {read_pitwall_version()},"
        in image.run(*restore[:3], "--check", backup[-1]).stdout
    )
    (file,) = folder.iterdir()
    assert (file.stat().st_uid, file.stat().st_mode & 0o777) == (int(image.user), 0o600)
    with empty_database() as url, forwarded(url) as address:
        done = image.run(*restore, env={"DATABASE_URL": address})
        assert done.returncode == 0, done.stderr
        with as_our_database(url):
            assert User.objects.filter(username="alice").exists()


def _documented_backups() -> list[list[str]]:
    """What `docker compose run` runs in the image, in docs/backup.md, in the order given there."""
    text = (CHECKOUT / "docs" / "backup.md").read_text().replace("\\\n", " ")
    lines = [
        line for line in text.splitlines() if line.startswith("docker compose") and "run" in line
    ]
    for line in lines:
        assert {"--rm", "--no-deps", "--user", "$PWD/backups:/backups"} <= set(shlex.split(line))
    services = [line.partition('/backups" ')[2].split()[0] for line in lines]
    assert services == ["web", "migrate"], "only the owner of the tables restores"
    return [shlex.split(line.partition('/backups" ')[2])[1:] for line in lines]


def _seed(image: Image, ssh: int) -> dict[str, str]:
    """What the demo's first step does, with a repository in its volume."""
    given = compose()["services"]["demo"]["command"]
    assert given[:4] == ["python", "-m", "devstack.demo", "/demo"]
    words_of_host = [word.replace("agent:2222", f"127.0.0.1:{ssh}") for word in given[6:]]
    program = (
        "import json, sys; from pathlib import Path; from devstack import demo, demo_repository\n"
        "folder = Path('/tmp/demo'); demo_repository.create_demo_repository(folder)\n"
        "print(json.dumps(demo.seed_demo(folder, sys.argv[1:])))"
    )
    # There is no network of containers here: the sample host is at loopback.
    local = {"PITWALL_ALLOW_LOCAL_REPOSITORIES": "1", "PITWALL_HOST_NETWORKS": "127.0.0.0/8"}
    done = image.run("python", "-c", program, *words_of_host, env=local)
    assert done.returncode == 0, done.stderr
    seed: dict[str, str] = json.loads(done.stdout)
    return seed


def _assert_hardened(image: Image) -> None:
    stdout = image.run(
        "python", "-c",
        "import os; print(os.getuid(), os.getgid(), os.getgroups(), os.listdir('/'))\n"
        "for path in ('/opt/pitwall/app/x', '/opt/pitwall/static/x', '/x', '/data/x', '/tmp/x'):\n"
        "    try: open(path, 'w'); print(path, 'written')\n"
        "    except OSError as error: print(path, error.strerror)\n"
        "print(open('/proc/self/status').read())",
    ).stdout  # fmt: skip
    assert stdout.startswith("10001 10001 []"), stdout
    for path in ("/opt/pitwall/app/x", "/opt/pitwall/static/x", "/x"):
        assert f"{path} Read-only file system" in stdout
    assert "/data/x written" in stdout
    assert "/tmp/x written" in stdout
    assert re.search(r"CapBnd:\s+0{16}\n", stdout), "it may gain no right"
    assert re.search(r"NoNewPrivs:\s+1\n", stdout)


def _assert_pages(port: int) -> None:
    status, body, _ = _get(port, reverse("login"))
    assert status == 200
    sheets = values(body, "link[rel=stylesheet]", "href") + values(body, "script[src]", "src")
    assert len(sheets) > 2
    for path in sheets:
        status, content, headers = _get(port, path)
        assert status == 200, path
        assert len(content) > 100
        assert "immutable" in headers["Cache-Control"], "its name tells its content"
    for path in ("/docs/", "/docs/tutorial.md", "/docs/glossary.md", "/docs/decisions/"):
        assert _get(port, path)[0] == 200, path


def _assert_ticks(port: int) -> None:
    """Beat sends, the worker takes up: by what both have counted."""

    def pumped() -> bool:
        match = re.search(r'task_seconds_count\{task="pump"\} (\d+)', _get(port, "/metrics")[1])
        return bool(match and int(match[1]) >= 2)

    wait_until(pumped, "no tick is processed")


def _command(name: str) -> list[str]:
    given: list[str] | None = compose()["services"][name].get("command")
    return given or words(stages()["pitwall"].all("CMD")[0])


@contextmanager
def _running(image: Image, argv: list[str]) -> Iterator[None]:
    child = subprocess.Popen(
        image.argv(*argv), env=image.environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        yield
        assert child.poll() is None, child.communicate()[0].decode()[-3000:]
    finally:
        child.terminate()
        try:
            child.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def _get(port: int, path: str) -> tuple[int, str, http.client.HTTPMessage]:
    url = f"http://127.0.0.1:{port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers
    except OSError:
        return 0, "", http.client.HTTPMessage()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
