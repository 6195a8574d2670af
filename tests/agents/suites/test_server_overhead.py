"""The suite server-overhead: the rows of its report are there, and their sources agree with it."""

import hashlib
import re
import runpy
from itertools import product
from pathlib import Path

import pytest

from orchestrator.benchmarks.choice import choose
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.miniature import build_miniature
from orchestrator.benchmarks.options import Option
from orchestrator.benchmarks.report_size import build_report_size
from orchestrator.benchmarks.spec import parse

SUITE = Path(__file__).parents[3] / "agents" / "suites" / "server-overhead"
SPEC = parse((SUITE / "benchmark.yaml").read_text())
SYSTEMS = SPEC.options["system"]

#: Language, framework, server and status of each row of the four tables; its "nett/http" is the
#: net/http of its other tables.
ROWS = (
    "python3 | falcon | meinheld |",
    "golang | | fast/http |",
    "haskell | | warp |",
    "python3 | japronto | | early preview",
    "rust | hyper | |",
    "python3 | vibora | | alpha",
    "golang | | net/http |",
    "java | | |",
    "node | | |",
    "python3 | falcon | bjoern |",
    "python3 | sanic | |",
    "python3 | flask | bjoern |",
    "python3 | aiohttp | |",
    "python3 | django | meinheld |",
    "pypy2 | falcon | meinheld |",
    "python3 | tornado | |",
    "python3 | flask | gevent |",
    "python3 | flask | eventlet |",
    "python3 | flask | gthread |",
    "python3 | flask | netius |",
    "pypy2 | flask | sync |",
    "pypy3 | flask | sync |",
    "python3 | flask | sync |",
    "python2 | flask | sync |",
    "python3 | flask | meinheld |",
    "python3 | falcon | gthread |",
    "python3 | falcon | tornado |",
    "python3 | falcon | eventlet |",
    "python3 | falcon | netius |",
    "python3 | falcon | gevent |",
    "python3 | falcon | waitress |",
    "python3 | falcon | sync |",
)
#: Of the files that commands name.
SOURCES = {".py", ".txt", ".js", ".java", ".hs", ".json", ".toml"}
#: Frameworks and servers that came after the report.
TODAY = {"granian", "uvicorn", "axum", "actix-web", "Fastify", "Netty"}


PARTS = ("language", "framework", "server", "status")


def _row(option: Option) -> str:
    labels = [option.labels.get(name, "") for name in PARTS]
    return " ".join(" | ".join(labels).split())


@pytest.mark.parametrize("row", ROWS)
def test_suite_has_each_row_of_the_report_once(row: str) -> None:
    assert [_row(option) for option in SYSTEMS.values()].count(row) == 1


def test_suite_has_current_servers_too() -> None:
    names = [option.labels.get(name) for option in SYSTEMS.values() for name in PARTS]
    assert set(names) >= TODAY


def test_every_system_is_measured_in_each_scenario_at_the_rates_of_the_report() -> None:
    assert set(SYSTEMS) == set(map(str, SPEC.list_values("system")))
    cells = [(case.parameters["scenario"], case.parameters["rate"]) for case in expand(SPEC)]
    rates = {"hello": (100, 1000, 10000), "burn": (100,), "sleep": (100,), "mb": (100,)}
    wanted = {(scenario, rate) for scenario, each in rates.items() for rate in each}
    assert set(cells) == wanted
    assert len(cells) == len(wanted) * len(SYSTEMS)


def _choose_pairs(source: str, cases: str) -> set[tuple[object, object]]:
    """Return the scenario and the system of each selected case."""
    spec = parse(source)
    chosen = choose(spec, expand(spec), cases)
    return {(case.parameters["scenario"], case.parameters["system"]) for case in chosen}


def test_quick_form_has_each_server_and_the_selection_of_the_report() -> None:
    source = (SUITE / "benchmark.yaml").read_text()
    small = build_miniature(source, (SUITE / "miniature.yaml").read_text())
    size = build_report_size(source, (SUITE / "report-size.yaml").read_text())
    selected = {system for _, system in _choose_pairs(size.source, size.parts[0].cases)}
    assert len(selected) == 10
    assert _choose_pairs(small.source, small.cases) == {
        *product(["hello"], SYSTEMS),
        *product(["burn", "sleep", "mb"], selected),
    }


def test_unavailable_systems_have_a_maintained_replacement() -> None:
    gone = {name: option for name, option in SYSTEMS.items() if option.unsupported}
    assert set(gone) == {"pypy2-falcon-meinheld", "pypy2-flask-sync"}
    for option in gone.values():
        assert SYSTEMS[str(option.replacement)].unsupported is None


def test_cases_can_be_selected_by_the_parts_of_a_system() -> None:
    expression = 'framework == "falcon" and server == "meinheld" and scenario == "burn"'
    chosen = [case.parameters["system"] for case in choose(SPEC, expand(SPEC), expression)]
    assert chosen == ["falcon-meinheld", "pypy2-falcon-meinheld", "pypy3-falcon-meinheld"]


@pytest.mark.parametrize(
    "name", [name for name, option in SYSTEMS.items() if not option.unsupported]
)
def test_files_named_by_a_system_exist(name: str) -> None:
    subject = SYSTEMS[name].subject
    install = subject.get("install", {})
    commands = [*install.get("steps", []), *subject.get("build", []), subject["start"]]
    words = [word.replace("{system}", name) for command in commands for word in command]
    sources = [word.removeprefix("{tree}/") for word in words if Path(word).suffix in SOURCES]
    apps = [f"python/{word.partition(':')[0]}.py" for word in words if word.startswith("app_")]
    for path in [*install.get("files", []), *sources, *apps]:
        assert (SUITE / path).is_file(), path
    assert any((SUITE / "systems" / name).iterdir())
    read = [word for step in install.get("steps", []) for word in step]
    paths = [word.replace("{system}", name).removeprefix("{tree}/") for word in read]
    assert {path for path in paths if (SUITE / path).is_file()} <= set(install.get("files", []))


@pytest.mark.parametrize("path", sorted(SUITE.glob("systems/*/*.txt")), ids=lambda p: p.parent.name)
def test_requirements_are_pinned_with_hashes(path: Path) -> None:
    entries = [line for line in path.read_text().splitlines() if line[:1].isalnum()]
    assert entries
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._-]+==\S+ .*\\$", entry), entry
    assert path.read_text().count("--hash=sha256:") >= len(entries)


def test_servers_pass_their_checks() -> None:
    answers = runpy.run_path(str(SUITE / "python" / "work.py"))["ANSWERS"]
    for scenario, option in SPEC.options["scenario"].items():
        check = (option.checks or [])[0]
        body: bytes = answers[f"/{scenario}"]()
        assert check["path"] == f"/{scenario}"
        if "text" in check:
            assert body.decode() == check["text"]
        else:
            assert hashlib.sha256(body).hexdigest() == check["sha256"]
