"""compose.yaml, the Dockerfile and env.example name only what there is, and all of it."""

import json
import re
import shutil
import subprocess

import pytest
from django.core.management import get_commands

from devstack.tools.supplies import SUPPLIES
from tests.deployment.image import CHECKOUT, DOCKER, compose, stages, words

OURS = ("migrate", "web", "worker", "beat", "demo")
EXAMPLE = (DOCKER / "env.example").read_text()


def read_variables() -> set[str]:
    text = (CHECKOUT / "orchestrator" / "config" / "settings.py").read_text()
    return set(re.findall(r'environment\.\w+\(\s*"([A-Z0-9_]+)"', text))


def documented() -> dict[str, str]:
    text = (CHECKOUT / "docs" / "configuration.md").read_text().partition("## On a developer")[0]
    return dict(re.findall(r"^\| `([A-Z0-9_]+)` \| (.*?) \|", text, re.MULTILINE))


def test_the_example_has_every_variable_once_with_its_default():
    names = re.findall(r"^#?([A-Z][A-Z0-9_]+)=", EXAMPLE, re.MULTILINE)
    of_compose = {"POSTGRES_PASSWORD", "PITWALL_PORT"}
    assert sorted(names) == sorted(read_variables() | of_compose)
    commented = dict(re.findall(r"^#([A-Z][A-Z0-9_]+)=(.*)$", EXAMPLE, re.MULTILINE))
    for name, value in commented.items():
        if name not in of_compose and value:
            assert documented()[name] == f"`{value}`"


def test_compose_and_image_set_only_variables_that_are_read():
    known = read_variables() | {"PATH", "DJANGO_SETTINGS_MODULE"}
    set_there = set(stages()["pitwall"].environment())
    for name in OURS:
        set_there |= set(compose()["services"][name]["environment"])
    assert {name for name in set_there if not name.startswith("PYTHON")} <= known
    used = set(re.findall(r"\$\{([A-Z_]+)", (DOCKER / "compose.yaml").read_text()))
    assert used <= set(re.findall(r"^#?([A-Z_]+)=", EXAMPLE, re.MULTILINE))


def test_new_env_makes_secrets_and_overwrites_nothing(tmp_path):
    for name in ("new-env.sh", "env.example"):
        shutil.copy(DOCKER / name, tmp_path)
    argv = ["sh", str(tmp_path / "new-env.sh")]
    subprocess.run(argv, check=True, capture_output=True)
    made = (tmp_path / ".env").read_text()
    secrets = re.findall(r"^(?:PITWALL_SECRET_KEY|POSTGRES_PASSWORD)=([0-9a-f]{64})$", made, re.M)
    assert len(set(secrets)) == 2
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    again = subprocess.run(argv, capture_output=True, text=True)
    assert again.returncode == 1
    assert (tmp_path / ".env").read_text() == made


@pytest.mark.parametrize("name", [*OURS, "agent", "redis"])
def test_a_service_has_no_rights_that_it_does_not_need(name):
    service = compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "network_mode", "cap_add", "pid"} & set(service)


def test_what_services_need_of_each_other_is_there():
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
            assert volume.partition(":")[0] in volumes
        if built := service.get("build", {}).get("target"):
            assert built in stages()
    published = {name for name, each in services.items() if "ports" in each}
    assert published == {"web"}
    assert services["web"]["ports"] == ["127.0.0.1:${PITWALL_PORT:-8000}:8000"]


def test_addresses_are_those_of_services_and_their_ports():
    text = (DOCKER / "compose.yaml").read_text()
    ports = {"postgres": "5432", "redis": "6379"}
    ports |= {"web": stages()["pitwall"].all("EXPOSE")[0]}
    ports |= {"agent": stages()["agent"].all("EXPOSE")[0]}
    named = set(re.findall(r"(?://|@)([a-z]+):(\d+)", text))
    assert named == set(ports.items())
    assert f"0.0.0.0:{ports['web']}" in words(stages()["pitwall"].all("CMD")[0])
    assert f"Port {ports['agent']}" in (DOCKER / "agent" / "sshd_config").read_text()


def test_its_stages_run_as_nobody_and_take_what_others_made():
    for name in ("pitwall", "agent"):
        stage = stages()[name]
        assert stage.all("USER") == ["10001:10001"]
        assert words(stage.all("CMD")[0])
        assert words(stage.all("HEALTHCHECK")[0])
        for text in stage.all("COPY"):
            if found := re.match(r"--from=(\S+)", text):
                assert found[1] in stages()
            else:
                assert all((CHECKOUT / source).exists() for source in text.split()[:-1])


def test_the_image_makes_backups_of_the_server_beside_it():
    major = compose()["services"]["postgres"]["image"].partition(":")[2]
    (line,) = [each for each in stages()["pitwall"].all("RUN") if "apt-get install" in each]
    assert f"postgresql-client-{major}" in line.split()


def test_a_database_that_is_still_set_up_is_not_healthy():
    """The server of that time answers on its socket, and is stopped at the end of it."""
    check = compose()["services"]["postgres"]["healthcheck"]["test"]
    assert check[check.index("--host") + 1] == "127.0.0.1"


def test_its_commands_are_commands_of_ours():
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


def test_the_uninstalled_packages_are_needed_by_nothing_else():
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
        assert users[name] - {"r", "requirements", "in"} <= gone, name


@pytest.mark.parametrize("path", ["docker/new-env.sh", "docker/agent/start-sshd.sh"])
def test_its_scripts_are_those_of_any_shell(path):
    done = subprocess.run(["sh", "-n", str(CHECKOUT / path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_health_checks_are_json_that_needs_no_shell():
    for name, service in compose()["services"].items():
        check = service.get("healthcheck", {})
        if "test" in check:
            assert check["test"][0] == "CMD", name
            assert json.dumps(check["test"])
