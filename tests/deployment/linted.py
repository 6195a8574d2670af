"""`python -m tests.deployment.linted`: what hadolint and Compose's own reader say of docker/.

hadolint is installed below .pitwall/bench from requirements/docker.txt; the reader is what `docker
compose config` reads with, built by Go from the module proxy.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from perf.harness.environments import build_venv
from tests.deployment.image import CHECKOUT, COMPOSE_FILES, DOCKER, compose

READER = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"


def main() -> int:
    problems = [*linted(), *read()]
    print("\n".join(problems) or "docker/: nothing to fix")
    return 1 if problems else 0


def linted() -> list[str]:
    hadolint = build_venv("hadolint", CHECKOUT / "requirements" / "docker.txt") / "hadolint"
    argv = [str(hadolint), str(DOCKER / "Dockerfile")]
    done = subprocess.run(argv, capture_output=True, text=True)
    return (done.stdout + done.stderr).splitlines() if done.returncode else []


def read() -> list[str]:
    """The model has our services, with the password of .env filled in."""
    go = shutil.which("go")
    if go is None:
        return ["There is no Go to build the reader of compose.yaml with."]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "docker"
        shutil.copytree(DOCKER, folder)
        subprocess.run(["sh", "new-env.sh"], cwd=folder, check=True, capture_output=True)
        made = dict(re.findall(r"(?m)^([A-Z_]+)=(.+)$", (folder / ".env").read_text()))
        # Compose takes them from .env; this program of the reader looks at no variable.
        for file in COMPOSE_FILES:
            text = (folder / file).read_text()
            for key, value in made.items():
                text = re.sub(rf"\$\{{{key}:[^}}]*\}}", value, text)
            (folder / file).write_text(text)
        argv = [go, "run", READER, "--format", "json", *COMPOSE_FILES]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.splitlines()
    services = json.loads(done.stdout)["services"]
    given = services["web"]["environment"]
    # Both files have a list of NAME=value.
    given = given if isinstance(given, dict) else dict(each.split("=", 1) for each in given)
    url = given["DATABASE_URL"]
    password = made["PITWALL_DATABASE_PASSWORD"]
    problems = [] if f":{password}@" in url else [f"web gets another password: {url}"]
    if set(services) != set(compose()["services"]):
        problems.append(f"other services: {', '.join(services)}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
