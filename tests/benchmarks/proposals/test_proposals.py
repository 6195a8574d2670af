"""Proposals for repositories of several languages: valid definitions, with reasons."""

from typing import Any

import pytest
import yaml

from orchestrator.benchmarks.proposals.commands import find_start_command, parse_command
from orchestrator.benchmarks.proposals.proposal import Proposal, build_proposal
from orchestrator.benchmarks.review import Review, review

FASTAPI = 'from fastapi import FastAPI\napp = FastAPI()\n@app.get("/items")\ndef a(): ...\n'
HEALTH = '@app.get("/healthz")\ndef b(): ...\n'
EXPRESS = 'app.get("/hello", f);\napp.listen(process.env.PORT || 3000);\n'
FIXED = 'http.HandleFunc("/hi", f)\nhttp.ListenAndServe(":8080", nil)\n'
POM = """<project>
<parent><artifactId>spring-boot-starter-parent</artifactId><version>3.4.0</version></parent>
<artifactId>shop</artifactId><version>1.2.0</version>
<dependencies><dependency><artifactId>other</artifactId></dependency></dependencies>
</project>"""
PROCFILE = "release: x\nweb: gunicorn -b 0.0.0.0:$PORT shop:app\n"
FLASK = {
    "pyproject.toml": "[project]\ndependencies = ['flask>=3']",
    "app.py": "web = Flask(__name__)\n",
}
NODE = {"package.json": '{"scripts": {"start": "node server.js"}}', "server.js": EXPRESS}
GRADLE = {
    "build.gradle": "version = '2.0'\n",
    "settings.gradle": "rootProject.name = 'shop'",
    "gradlew": "",
}
IMAGE = 'FROM x\nEXPOSE 9000\nENTRYPOINT ["/bin/serve"]\nCMD ["--port", "9000"]\n'
NETWORK = ["--host", "{bind}", "--port", "{port}"]
SPRING = ["--server.port={port}", "--server.address={bind}"]


def _propose(files: dict[str, str]) -> tuple[Proposal, Any]:
    """The proposal and its data; it has to be a definition that can be saved."""
    proposal = build_proposal("Shop", files)
    assert proposal is not None
    result = review(proposal.source)
    assert isinstance(result, Review), (result, proposal.source)
    return proposal, yaml.safe_load(proposal.source)


@pytest.mark.parametrize(
    ("files", "start"),
    [
        (
            {"Procfile": PROCFILE, "requirements.txt": "gunicorn\n"},
            ["{installed}/bin/gunicorn", "-b", "{bind}:{port}", "shop:app"],
        ),
        (
            {"requirements.txt": "fastapi\nuvicorn[standard]\n", "app/main.py": FASTAPI},
            ["{installed}/bin/uvicorn", "app.main:app", *NETWORK],
        ),
        (
            FLASK,
            ["{installed}/bin/flask", "--app", "app:web", "run", *NETWORK],
        ),
        (
            {"server.py": 'parser.add_argument("--port")\nif self.path == "/hello":'},
            ["{python}", "server.py", "--port", "{port}"],
        ),
        (
            {"manage.py": "", "requirements.txt": "django\n"},
            ["{installed}/bin/python", "manage.py", "runserver", "--noreload", "{bind}:{port}"],
        ),
        (NODE, ["node", "server.js"]),
        ({"go.mod": "module shop\n", "main.go": FIXED}, ["./pitwall-server"]),
        ({"Cargo.toml": '[package]\nname = "shop"\n', "Cargo.lock": ""}, ["target/release/shop"]),
        (
            {"pom.xml": POM},
            ["java", "-jar", "target/shop-1.2.0.jar", *SPRING],
        ),
        (
            GRADLE,
            ["java", "-jar", "build/libs/shop-2.0.jar"],
        ),
        (
            {"Dockerfile": IMAGE},
            ["/bin/serve", "--port", "{port}"],
        ),
        (
            {"Dockerfile": "FROM x\nCMD cd src && ./serve --port $PORT\n"},
            ["sh", "-c", "cd src && ./serve --port {port}"],
        ),
    ],
)
def test_the_start_command_is_proposed(files: dict[str, str], start: list[str]) -> None:
    proposal, data = _propose(files)
    assert data["subject"]["start"] == start
    assert "subject.start" in {guess.field for guess in proposal.guesses}


@pytest.mark.parametrize(
    ("requirements", "files"),
    [
        ("flask\n# -e .\n", ["requirements.txt"]),
        ("flask\n-r base.txt\n", ["."]),
        ("-e .\nflask\n", ["."]),
        ("flask\n  ./plugin\n", ["."]),
        ("--constraint=limits.txt\nflask\n", ["."]),
    ],
)
def test_an_install_is_given_the_files_that_its_requirements_read(
    requirements: str, files: list[str]
) -> None:
    _, data = _propose({**FLASK, "requirements.txt": requirements})
    assert data["subject"]["install"]["files"] == files


def test_the_port_is_given_in_the_way_that_the_code_reads_it() -> None:
    node = {"package.json": '{"main": "lib/x.js"}', "lib/x.js": EXPRESS, "package-lock.json": ""}
    proposal, data = _propose(node)
    assert data["subject"]["env"] == {"PORT": "{port}"}
    assert data["subject"]["build"] == [["npm", "ci"]]
    reasons = {guess.field: guess.reason for guess in proposal.guesses}
    assert reasons["subject.env.PORT"] == "lib/x.js reads this variable"
    assert reasons["subject.build"] == "Node.js, from package.json"

    proposal, data = _propose({"go.mod": "module shop\n", "main.go": FIXED})
    assert data["subject"]["port"] == 8080
    assert "env" not in data["subject"]
    assert "it always listens on 8080, from main.go" in {g.reason for g in proposal.guesses}

    _, data = _propose({"Dockerfile": 'EXPOSE 9000\nCMD ["/serve"]'})
    assert data["subject"]["port"] == 9000
    # Port 80 needs root: the variable is the better guess.
    proposal, data = _propose({"Dockerfile": 'EXPOSE 80\nCMD ["/serve"]'})
    assert data["subject"]["env"] == {"PORT": "{port}"}
    assert [g.field for g in proposal.guesses if g.doubtful] == [
        "subject.build", "subject.env.PORT", "subject.ready.path", "load.path",
    ]  # fmt: skip


def test_the_paths_are_those_that_the_code_answers() -> None:
    files = {"requirements.txt": "fastapi\nuvicorn\n", "main.py": FASTAPI + HEALTH}
    proposal, data = _propose(files)
    assert (data["subject"]["ready"]["path"], data["load"]["path"]) == ("/healthz", "/items")
    assert not any(guess.doubtful for guess in proposal.guesses)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "Hello"},
        {"Procfile": "worker: run\n"},
        {"package.json": "[" * 10_000},
        {"Cargo.toml": "name ="},
        {"Cargo.toml": f"{'a.' * 60_000}a = 1"},
        {"pom.xml": "<parent>" * 10_000},
    ],
)
def test_without_a_start_command_nothing_is_proposed(files: dict[str, str]) -> None:
    assert build_proposal("Shop", files) is None


def test_variables_of_a_command_become_the_environment() -> None:
    command = parse_command("exec MODE=fast /serve", origin="Procfile")
    assert command is not None
    assert command.argv == ("MODE=fast", "/serve")
    command = parse_command("MODE=fast ADDRESS=0.0.0.0 exec /serve -p 8000", origin="Procfile")
    assert command is not None
    assert command.argv == ("/serve", "-p", "{port}")
    assert command.env == {"MODE": "fast", "ADDRESS": "{bind}"}
    assert parse_command("'", origin="") is not None
    assert parse_command(" ", origin="") is None
    assert find_start_command({"Procfile": "web: " + "x" * 10_000}) is None
