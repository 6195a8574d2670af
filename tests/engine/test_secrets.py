"""Runs of two teams leave no secret behind, and nothing of the one on the other's host."""

import contextlib
import logging
import stat
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import requests
from allauth.mfa.models import Authenticator
from django.core.management import call_command
from django.urls import reverse

from orchestrator.accounts.models import User
from orchestrator.accounts.services import create_token
from orchestrator.accounts.vault import SECOND_FACTORS, seal_text
from orchestrator.benchmarks.project_secrets import load_secrets, set_secret
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.services import add_credential
from orchestrator.runs.models import Build, Run, Trial
from tests.engine.test_over_ssh import add_confirmed
from tests.support.engine import MEASURED, Engine, running_engine, server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.html_pages import csrf_token, shown_secret
from tests.support.leaks import files, leaks, tables, watched_commands, watched_redis
from tests.support.sshd import SshServer, start_sshd

pytestmark = pytest.mark.engine

PASSWORD = "planted password 6b1f"
IN_ENVIRONMENT = {
    "PITWALL_SEALING_KEYS": "planted:sealing-key-of-forty-letters-0f1e2d3c4b5a69",
    "PITWALL_OIDC_CLIENT_SECRET": "planted-client-secret-5d0c",
}
#: A server that leaves its own environment and that of the agent where we find them.
TELLING = (
    "import os; from pathlib import Path; "
    "seen = [Path(f'/proc/{pid}/environ').read_bytes() for pid in (os.getpid(), os.getppid())]; "
    "Path('environment.txt').write_bytes(b'environment' + b''.join(seen)); planted = '{team}'"
)


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with start_sshd(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
def engine(team: Personas, tmp_path: Path, settings: Any) -> Iterator[Engine]:
    settings.SEALING_KEYS = [tuple(IN_ENVIRONMENT["PITWALL_SEALING_KEYS"].split(":"))]
    with running_engine(tmp_path, **IN_ENVIRONMENT) as running:
        yield running


@pytest.fixture
def secrets(team: Personas, machine: SshServer, engine: Engine, settings: Any) -> dict[str, str]:
    """What must not be found anywhere; the key's first line is the same in all keys."""
    alice = team.alice.user
    alice.set_password(PASSWORD)
    alice.save()
    hook = "planted-webhook-secret-93ac"
    Authenticator.objects.create(
        user=User.objects.get(username="bob"),
        type="totp",
        data={"secret": seal_text(hook, SECOND_FACTORS)},
    )
    body = machine.client_private_key.split("\n")[2:-2]
    return {
        "password": PASSWORD,
        "token": create_token(member=team.alice, name="ci").secret,
        "webhook secret": hook,
        "secret key": settings.SECRET_KEY,
        **{name: value.split(":")[-1] for name, value in IN_ENVIRONMENT.items()},
        **{f"private key, line {number}": line for number, line in enumerate(body)},
    }


def start_runs(team: Personas, machine: SshServer, folder: Path) -> tuple[Run, Run]:
    """Red's over SSH, and blue's on a host of this machine, where the agent is a child of ours."""
    made = []
    add_confirmed(machine, team)
    make_local_host(team.mallory)
    for name, member, host in (("red", team.alice, "bench-1"), ("blue", team.mallory, "here")):
        source = server(start=TELLING.replace("{team}", f"planted-{name}"))
        versions = [source, {**source, "note": name}]
        project, shas = make_project(member, folder / name, versions)
        make_definition(member, project)
        made.append(make_run(member, shas, hosts=(host,), rounds=1))
    return made[0], made[1]


def sent(browser: requests.Session, address: str, data: dict[str, str]) -> requests.Response:
    """The answer to the form that an address leads to."""
    form = browser.get(address)
    return browser.post(form.url, {**data, "csrfmiddlewaretoken": csrf_token(form)})


def fetch_pages(address: str, run: Run, token: str) -> tuple[dict[str, bytes], str]:
    """What a browser and a script are shown, also when they do something wrong.

    And the secret of a second factor that alice begins to set up, and does not confirm.
    """
    browser, script = requests.Session(), {"Authorization": f"Bearer {token}"}
    mistyped = {"username": "alice", "password": PASSWORD + "!"}
    with browser:
        for data in (mistyped, {**mistyped, "password": PASSWORD}):
            answer = sent(browser, f"{address}/login", data)
        assert "Overview" in answer.text
        job = run.jobs.get()
        paths = (
            "/", f"/runs/{run.pk}/", f"/trials/{job.trials.all()[0].pk}/", "/hosts/",
            f"/hosts/{job.host_id}/", "/settings/", "/account/", "/none", f"/runs/{job.pk}/",
        )  # fmt: skip
        api = (f"/api/v1/runs/{run.pk}", "/api/v1/hosts", "/api/v1/none")
        answers = [
            *(browser.get(address + path) for path in paths),
            *(requests.get(address + path, headers=script, timeout=20) for path in api),
            requests.post(f"{address}/api/v1/runs", data="{", headers=script, timeout=20),
        ]
        # Who it is has to be said once more.
        on = address + reverse("mfa_activate_totp")
        setting_up = sent(browser, on, {"password": PASSWORD})
    factor = shown_secret(setting_up)
    assert [each.status_code for each in answers[:7]] == [200] * 7
    return {each.url: each.content + str(each.headers).encode() for each in answers}, factor


def test_no_secret_and_nothing_of_another_team_is_left(
    engine: Engine, team: Personas, machine: SshServer, secrets: dict[str, str],
    live_server: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with caplog.at_level(logging.DEBUG), watched_commands() as argv, watched_redis() as chunks:
        red, blue = start_runs(team, machine, tmp_path)
        for run in (red, blue):
            assert engine.finish(run).state in MEASURED
        pages, secrets["second factor"] = fetch_pages(live_server.url, red, secrets["token"])
        lines = machine.client_private_key.splitlines(keepends=True)
        broken = "".join(lines[:1] + lines[2:])
        with pytest.raises(InvalidRequestError) as refused:
            add_credential(member=team.alice, name="broken", private_key=broken)
    assert Trial.objects.filter(state="measured").count() == 4
    on_hosts = {
        red: files(machine.work_dir),
        blue: files(engine.data_dir / "hosts" / str(blue.jobs.get().host_id)),
    }
    places = {
        **tables(), **pages, **files(engine.logs), **on_hosts[red], **on_hosts[blue],
        "error": str(refused.value).encode(), "argv": b"\n".join(argv), "redis": b"".join(chunks),
        "log of the web": caplog.text.encode(),
    }  # fmt: skip
    assert leaks(places, secrets) == []
    # It was looked in the right places: what is no secret is found there.
    assert b"bench-1" in places["table fleet_host"]
    assert b"environment" in b"".join(on_hosts[blue].values())
    assert str(red.jobs.get().pk).encode() in places["argv"]
    assert b"orchestrator.dispatch.tasks" in places["redis"]
    _keep_apart(red, blue, on_hosts)
    _are_closed(machine.work_dir, red)


def _keep_apart(red: Run, blue: Run, on_hosts: dict[Run, dict[str, bytes]]) -> None:
    """A host has its own team's job and nothing of the other's."""
    for own, other in ((red, blue), (blue, red)):
        everything = "\n".join(on_hosts[own]).encode() + b"".join(on_hosts[own].values())
        name = own.definition.benchmark.project.team.slug
        foreign = other.definition.benchmark.project.team.slug
        assert f"planted-{name}".encode() in everything
        job, variant = other.jobs.get(), other.variants.all()[0]
        for part in (f"planted-{foreign}", str(job.pk), variant.commit.sha):
            assert part.encode() not in everything


def _are_closed(work_dir: Path, run: Run) -> None:
    """No other user of the machine can enter the folder of a job."""
    job = work_dir / "jobs" / str(run.jobs.get().pk)
    assert job.is_dir()
    for folder in (work_dir, work_dir / "jobs", job, *(each for each in job.iterdir())):
        assert not folder.is_dir() or stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in job.rglob("plan.json"))


TOKEN, KEY = "t0ken-of-the-shop-4c1", "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7\n-----END KEY-----\n"
#: What must not be found: the values, and each line of the one with several.
VALUES = {"token": TOKEN, **{f"line {n}": line for n, line in enumerate(KEY.splitlines())}}
PRINT = "import os; print('built with', os.environ['TOKEN'])"
#: Install, build, service and server get secrets, and each prints them.
WITH_SECRETS = DEFINITION.replace(
    '  ready: {path: /hello, body: "Hello, World!", timeout_s: 5}\n',
    f"""\
  ready: {{path: /hello, timeout_s: 5}}
  install: {{steps: [["{{python}}", "-c", "{PRINT}"]]}}
  build: [["{{python}}", "-c", "{PRINT}"]]
  env: {{TOKEN: {{secret: SHOP_TOKEN}}, KEY: {{secret: SHOP_KEY}}}}
services:
  told:
    role: target
    start: ["{{python}}", "server.py", "--port", "{{port}}"]
    env: {{TOKEN: {{secret: SHOP_TOKEN}}, KEY: {{secret: SHOP_KEY}}}}
""",
)


def telling_server() -> dict[str, str]:
    """A server that prints its secrets in pieces, and answers with one of them."""
    source = server(
        start=(
            "import os; token, key = os.environ['TOKEN'], os.environ['KEY']; "
            "[print('app |', line, file=sys.stderr, flush=True) for line in key.splitlines()]; "
            "os.write(1, token[:9].encode()); time.sleep(0.1); os.write(1, token[9:].encode())"
        ),
        extra="os.write(1, token.encode() + b'\\n')",
    )["server.py"]
    return {"server.py": source.replace("'Hello, World!'.encode()", "f'Hello, {token}!'.encode()")}


@contextlib.contextmanager
def watched_files(folder: Path) -> Iterator[list[str]]:
    """Yield the leaks in files below the folder during the block."""
    found: list[str] = []
    stop = threading.Event()

    def scan() -> None:
        while not stop.wait(0.1):
            with contextlib.suppress(OSError):  # a file was removed in between
                found.extend(leaks(files(folder), VALUES))

    watcher = threading.Thread(target=scan)
    watcher.start()
    try:
        yield found
    finally:
        stop.set()
        watcher.join()


def fetch_outputs(address: str, run: Run, member: Any) -> dict[str, bytes]:
    """All outputs of the run, and what pages and API show of it and of its secrets."""
    member.user.set_password(PASSWORD)
    member.user.save()
    script = {"Authorization": f"Bearer {create_token(member=member, name='ci').secret}"}
    trial, build = run.jobs.get().trials.all()[0], Build.objects.all()[0]
    slug = run.definition.benchmark.project.slug
    names = list(trial.artifacts.values_list("name", flat=True))
    with requests.Session() as browser:
        sent(browser, f"{address}/login", {"username": "alice", "password": PASSWORD})
        paths = (
            f"/runs/{run.pk}/", f"/trials/{trial.pk}/", f"/builds/{build.pk}/log",
            f"/projects/{slug}/secrets/", f"/projects/{slug}/", "/settings/audit/",
            f"/benchmarks/{slug}/hello/",
        )  # fmt: skip
        api = (
            f"runs/{run.pk}", f"runs/{run.pk}/trials", f"trials/{trial.pk}",
            *(f"trials/{trial.pk}/artifacts/{name}" for name in names),
            f"builds/{build.pk}/log", f"projects/{slug}/secrets",
            f"benchmarks/{slug}/hello/definitions/1",
        )  # fmt: skip
        answers = [
            *(browser.get(address + path) for path in paths),
            *(requests.get(f"{address}/api/v1/{path}", headers=script, timeout=20) for path in api),
        ]
    assert {each.status_code for each in answers} == {200}, [each.url for each in answers]
    return {each.url: each.content + str(each.headers).encode() for each in answers}


def test_a_server_with_secrets_is_measured_and_leaves_none_of_them(
    engine: Engine, team: Personas, machine: SshServer, live_server: Any, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    add_confirmed(machine, team)
    source = telling_server()
    project, shas = make_project(team.alice, tmp_path / "red", [source, {**source, "n": "2"}])
    make_definition(team.alice, project, source=WITH_SECRETS)
    for name, value in (
        ("SHOP_TOKEN", "the first value"),
        ("SHOP_TOKEN", TOKEN),
        ("SHOP_KEY", KEY),
    ):
        set_secret(member=team.alice, project=project, name=name, value=value)
    with (
        caplog.at_level(logging.DEBUG),
        watched_commands() as argv,
        watched_redis() as chunks,
        watched_files(machine.work_dir) as found,
    ):
        run = make_run(team.alice, shas, hosts=("bench-1",), rounds=2)
        assert engine.finish(run).state in MEASURED, run.message
        outputs = fetch_outputs(live_server.url, run, team.alice)
        archive = tmp_path / "project.pitwall"
        call_command("export_project", "red", project.slug, archive, quiet=True, stdout=StringIO())
    assert found == []
    on_host = files(machine.work_dir)
    places = {
        **tables(), **outputs, **files(engine.logs), **on_host, "archive": archive.read_bytes(),
        "argv": b"\n".join(argv), "redis": b"".join(chunks), "log of the web": caplog.text.encode(),
    }  # fmt: skip
    assert leaks(places, VALUES) == []
    # The values were there: each process printed them, and the server answered with one.
    trials = Trial.objects.filter(state="measured")
    assert trials.count() == 4
    for trial in trials:
        assert trial.provenance["secrets"] == {"SHOP_KEY": 1, "SHOP_TOKEN": 2}
        assert {each["length"] for each in trial.provenance["checks"]} == {len(f"Hello, {TOKEN}!")}
    everything = b"".join(on_host.values())
    assert everything.count(b"app | ***\n") >= 6
    assert b"built with ***\n" in everything
    log = next(text for url, text in outputs.items() if url.endswith("artifacts/server.log"))
    assert b"***\n***\n" in log
    assert all(each.last_used_at for each in load_secrets(project))
