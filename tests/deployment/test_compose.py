"""compose.yaml, the Dockerfile and env.example name only what there is, and all of it."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from django.core.management import get_commands
from redis import AuthenticationError, Redis, RedisError

from devstack.instance import choose_port
from devstack.redis import choose_binary
from devstack.tools.supplies import SUPPLIES
from tests.deployment.image import CHECKOUT, COMPOSE_FILES, DOCKER, compose, stages, words

OURS = ("migrate", "web", "worker", "background", "beat", "demo")
EXAMPLE = (DOCKER / "env.example").read_text()
OF_COMPOSE = (DOCKER / "compose.env.example").read_text()
TEXT = "".join((DOCKER / name).read_text() for name in COMPOSE_FILES)


def read_variables() -> set[str]:
    text = (CHECKOUT / "orchestrator" / "config" / "settings.py").read_text()
    return set(re.findall(r'variables\.\w+\(\s*"([A-Z0-9_]+)"', text))


def documented() -> dict[str, str]:
    text = (CHECKOUT / "docs" / "configuration.md").read_text().partition("## On a developer")[0]
    return dict(re.findall(r"^\| `([A-Z0-9_]+)` \| (.*?) \|", text, re.MULTILINE))


def test_the_example_lists_every_variable_once_with_its_default():
    names = re.findall(r"^#?([A-Z][A-Z0-9_]+)=", EXAMPLE, re.MULTILINE)
    assert sorted(names) == sorted(read_variables())
    commented = dict(re.findall(r"^#([A-Z][A-Z0-9_]+)=(.*)$", EXAMPLE, re.MULTILINE))
    for name, value in commented.items():
        if value:
            assert documented()[name] == f"`{value}`"


def test_compose_and_image_set_only_variables_that_are_read():
    known = read_variables() | {"PATH", "DJANGO_SETTINGS_MODULE"}
    set_there = set(stages()["pitwall"].environment())
    for name in OURS:
        set_there |= set(compose()["services"][name]["environment"])
    assert {name for name in set_there if not name.startswith("PYTHON")} <= known
    defaults = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", OF_COMPOSE, re.MULTILINE))
    used = dict(re.findall(r"(?<!\$)\$\{([A-Z_]+):(?:-([^}]*)|\?[^}]*)\}", TEXT))
    assert used == defaults


def test_new_env_generates_secrets_and_overwrites_nothing(tmp_path):
    for name in ("new-env.sh", "env.example", "compose.env.example"):
        shutil.copy(DOCKER / name, tmp_path)
    argv = ["sh", str(tmp_path / "new-env.sh")]
    subprocess.run(argv, check=True, capture_output=True)
    made = {name: (tmp_path / name).read_text() for name in (".env", "pitwall.env")}
    secrets = re.findall(r"^[A-Z_]+=([0-9a-f]{64})$", "".join(made.values()), re.M)
    assert len(set(secrets)) == 5
    assert not re.findall(r"^[A-Z_]*(?:PASSWORD|KEY)=$", "".join(made.values()), re.M)
    assert "PASSWORD=" not in re.sub(r"(?m)^#.*$", "", made["pitwall.env"])
    for name in made:
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    again = subprocess.run(argv, capture_output=True, text=True)
    assert again.returncode == 1
    assert {name: (tmp_path / name).read_text() for name in made} == made


def test_measured_code_of_the_sample_host_reaches_no_pitwall_server():
    """Two containers reach each other only by a network that both are in."""
    services = compose()["services"]
    agent = set(services["agent"]["networks"])
    for name in ("postgres", "redis", "web", "beat", "migrate"):
        assert not agent & set(services[name]["networks"]), name
    assert agent & set(services["worker"]["networks"]), "it is measured on"
    for name in (*agent, "state"):
        assert compose()["networks"][name] == {"internal": True}
    assert set(services["postgres"]["networks"]) == set(services["redis"]["networks"]) == {"state"}


def test_each_container_gets_only_the_secrets_that_it_needs():
    given = {
        name: set(re.findall(r"\$\{([A-Z_]+PASSWORD)", json.dumps(service)))
        for name, service in compose()["services"].items()
    }
    owner, ours, redis = "PITWALL_OWNER_PASSWORD", "PITWALL_DATABASE_PASSWORD", "REDIS_PASSWORD"
    assert given.pop("postgres") == {"POSTGRES_PASSWORD", owner, ours}
    assert given.pop("redis") == {redis}
    assert given.pop("migrate") == {owner, redis}
    assert given.pop("agent") == set()
    assert all(names == {ours, redis} for names in given.values()), given
    for name, service in compose()["services"].items():
        wanted = ["pitwall.env"] if service["image"] == "pitwall" else None
        assert service.get("env_file") == wanted, name


def test_each_container_has_limits():
    for name, service in compose()["services"].items():
        assert service["pids_limit"] > 0, name
        assert service["mem_limit"], name


def test_only_the_demo_accepts_local_repositories():
    name = "PITWALL_ALLOW_LOCAL_REPOSITORIES"
    server = compose("compose.yaml")["services"].values()
    assert not any(name in service.get("environment", {}) for service in server)
    assert f"#{name}=0\n" in EXAMPLE
    for each in ("web", "worker", "demo"):
        assert compose()["services"][each]["environment"][name] == "1"


@pytest.mark.parametrize("name", [*OURS, "agent", "redis"])
def test_services_have_only_needed_capabilities(name):
    service = compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "network_mode", "cap_add", "pid"} & set(service)


def test_dependencies_between_services_exist():
    services, volumes = compose()["services"], compose()["volumes"]
    targets = {
        each["image"]: each["build"]["target"] for each in services.values() if "build" in each
    }
    for name, service in services.items():
        if service.get("pull_policy") == "never":
            assert service["image"] in targets, f"{name} has an image that nobody builds"
        for needed, how in service.get("depends_on", {}).items():
            other = services[needed]
            if how["condition"] == "service_healthy":
                built = targets.get(other["image"])
                own = stages()[built].all("HEALTHCHECK") if built else []
                assert other.get("healthcheck") or own, f"{name} waits for {needed} for ever"
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in volumes or (DOCKER / source).is_file()
        if built := service.get("build", {}).get("target"):
            assert built in stages()
    published = {name for name, each in services.items() if "ports" in each}
    assert published == {"web"}
    assert services["web"]["ports"] == ["127.0.0.1:${PITWALL_PORT:-8000}:8000"]


def test_addresses_name_services_and_their_ports():
    ports = {"postgres": "5432", "redis": "6379"}
    ports |= {"web": stages()["pitwall"].all("EXPOSE")[0]}
    ports |= {"agent": stages()["agent"].all("EXPOSE")[0]}
    named = set(re.findall(r"(?://|@)([a-z]+):(\d+)", TEXT))
    assert named == set(ports.items())
    assert f"0.0.0.0:{ports['web']}" in words(stages()["pitwall"].all("CMD")[0])
    assert f"Port {ports['agent']}" in (DOCKER / "agent" / "sshd_config").read_text()


def test_image_stages_run_without_root_and_copy_existing_files():
    for name in ("pitwall", "agent"):
        stage = stages()[name]
        assert stage.all("USER") == ["10001:10001"]
        assert words(stage.all("CMD")[0])
        assert words(stage.all("HEALTHCHECK")[0])
        for text in stage.all("COPY"):
            if match := re.match(r"--from=(\S+)", text):
                assert match[1] in stages()
            else:
                assert all((CHECKOUT / source).exists() for source in text.split()[:-1])


def test_a_base_image_is_a_variable_that_takes_a_digest():
    """`python:${PYTHON}` is one of `python:3.13@sha256:…`, too."""
    arguments = dict(re.findall(r"(?m)^ARG ([A-Z]+)=(\S+)$", (DOCKER / "Dockerfile").read_text()))
    bases = re.findall(r"(?m)^FROM (\S+)", (DOCKER / "Dockerfile").read_text())
    assert {base.partition(":")[2] for base in bases} == {f"${{{name}}}" for name in arguments}
    for service in compose()["services"].values():
        for name, value in service.get("build", {}).get("args", {}).items():
            assert value == f"${{{name}_TAG:-{arguments[name]}}}"


def test_redis_needs_a_password_from_the_environment(tmp_path):
    """The command of compose.yaml, with the tests' own server by the name of Redis's."""
    service, port = compose()["services"]["redis"], choose_port()
    server = tmp_path / "redis-server"
    server.write_text(f'#!/bin/sh\nexec {choose_binary().path} "$@" --port {port}\n')
    server.chmod(0o755)
    password = "x" * 64
    argv = [word.replace("$$", "$") for word in service["command"]]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "REDISCLI_AUTH": password}
    child = subprocess.Popen(argv, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        mine = Redis(port=port, password=password, decode_responses=True)
        _wait_for(mine)
        assert mine.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert mine.config_get("maxmemory") == {"maxmemory": str(256 * 1024**2)}
        with pytest.raises(AuthenticationError):
            Redis(port=port).ping()
        assert password.encode() not in Path(f"/proc/{child.pid}/cmdline").read_bytes()
    finally:
        child.terminate()
        child.wait(20)


def _wait_for(redis: Redis) -> None:
    give_up = time.monotonic() + 60
    while True:
        try:
            redis.ping()
            return
        except RedisError:
            assert time.monotonic() < give_up
            time.sleep(0.1)


def test_the_image_has_backup_programs_of_the_server_version():
    major = compose()["services"]["postgres"]["image"].removesuffix("}").rpartition(":")[2]
    (line,) = [each for each in stages()["pitwall"].all("RUN") if "apt-get install" in each]
    assert f"postgresql-client-{major}" in line.split()


def test_a_database_during_setup_is_not_healthy():
    """The server of that time answers on its socket, and is stopped at the end of it."""
    check = compose()["services"]["postgres"]["healthcheck"]["test"]
    assert check[check.index("--host") + 1] == "127.0.0.1"


def test_commands_of_the_image_exist():
    for name in OURS:
        argv = compose()["services"][name].get("command") or words(
            stages()["pitwall"].all("CMD")[0]
        )
        if argv[1] == "manage.py":
            assert argv[2] in get_commands()
        else:
            assert argv[:2] == ["python", "-m"]
    (line,) = [each for each in stages()["oha"].all("RUN") if "cargo install" in each]
    assert f"oha --version {SUPPLIES['oha'].version} --locked --features http3" in line


def test_removed_packages_are_needed_by_nothing_else():
    """What comes with the embedded servers alone, by the lock file's own words."""
    (line,) = [each for each in stages()["packages"].all("RUN") if "uninstall" in each]
    gone = set(line.partition("--yes")[2].partition("&&")[0].split()) - {"pip"}
    lock = (CHECKOUT / "requirements.txt").read_text()
    users: dict[str, set[str]] = {}
    for part in re.split(r"\n(?=\S)", lock):
        name = part.partition("==")[0]
        via = part.partition("# via")[2]
        users.setdefault(name, set()).update(re.findall(r"[a-z][a-z0-9-]+", via) if via else ())
    for name in gone:
        assert users[name] - {"pitwall", "pyproject", "toml"} <= gone, name


@pytest.mark.parametrize("path", ["docker/new-env.sh", "docker/agent/start-sshd.sh"])
def test_scripts_are_posix_shell(path):
    done = subprocess.run(["sh", "-n", str(CHECKOUT / path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_health_checks_need_no_shell():
    for name, service in compose()["services"].items():
        check = service.get("healthcheck", {})
        if "test" in check and service["image"] in ("pitwall", "pitwall-agent"):
            assert check["test"][0] == "CMD", name
            assert json.dumps(check["test"])
