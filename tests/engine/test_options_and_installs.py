"""One matrix of systems that differ in how they are got, built and started, measured for real.

Some cannot be had here, and some do not build: the rest is measured all the same.
"""

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.runs.models import Build, Run, Trial
from tests.support.engine import MEASURED, Engine, running_engine, server
from tests.support.factories import Personas, make_definition, make_local_host, make_project
from tests.support.factories import make_run as run_of

pytestmark = pytest.mark.engine

#: Reports the path of its Python.
VENV_SERVER = {"requirements.txt": "hello==1\n", **server(start="print(sys.prefix, flush=True)")}

DEFINITION = dedent(
    """\
    version: 1
    title: Systems
    subject:
      ready: {path: /hello, body: "Hello, World!", timeout_s: 10}
    load: {path: /hello, connections: 2, duration_s: 1, warmup_s: 0.2}
    matrix: {system: [venv, plain, absent, gone, broken, other_tool, large]}
    options:
      system:
        venv:
          labels: {language: python}
          requires: {python3: ">=3.9"}
          subject:
            install:
              files: [requirements.txt]
              steps: [["{python}", -m, venv, --without-pip, "{installed}"]]
            start: ["{installed}/bin/python", server.py, --port, "{port}"]
        plain:
          subject:
            build: [["{python}", -c, "open('built', 'w').write('by {system}')"]]
            start: ["{python}", server.py, --port, "{port}"]
        absent:
          requires: {no-such-compiler: ">=2"}
          subject: {start: [no-such-compiler, run, "{port}"]}
        gone:
          unsupported: its packages are not to be had any more
          replacement: plain
          subject: {start: ["{python}", server.py]}
        broken:
          subject:
            build: [["{python}", -c, "raise SystemExit('undefined symbol')"]]
            start: ["{python}", server.py, --port, "{port}"]
        other_tool:
          subject: {start: ["{python}", server.py, --port, "{port}"]}
          load: {tool: k6}
        large:
          subject: {start: ["{python}", server.py, --port, "{port}"]}
          limits: {target: {cpus: 1000}}
    rounds: 2
    cooldown_s: 0
    """
)


@pytest.fixture
def engine(team: Personas, tmp_path: Path) -> Iterator[Engine]:
    """There is no load tool but oha."""
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in ("git", "tar", "sh", "test", "env", "python3"):
        folder = next(p for p in (Path("/usr/bin"), Path("/bin")) if (p / name).exists())
        (bare / name).symlink_to(folder / name)
    with running_engine(tmp_path, PITWALL_K6="", PATH=str(bare)) as running:
        yield running


@pytest.fixture
def run(team: Personas, tmp_path: Path) -> Run:
    """Of one commit."""
    project, shas = make_project(team.alice, tmp_path / "origin", [VENV_SERVER])
    make_definition(team.alice, project, source=DEFINITION)
    make_local_host(team.alice)
    return run_of(team.alice, shas)


def states(run: Run) -> dict[str, set[str]]:
    system_states: dict[str, set[str]] = {}
    for trial in Trial.objects.filter(job__run=run).select_related("case"):
        system_states.setdefault(trial.case.parameters["system"], set()).add(trial.state)
    return system_states


def test_supported_cases_are_measured_and_the_others_have_a_reason(
    engine: Engine, run: Run
) -> None:
    engine.finish(run)
    assert run.state in MEASURED
    assert states(run) == {
        "venv": {"measured"},
        "plain": {"measured"},
        "absent": {"unsupported"},
        "gone": {"unsupported"},
        "broken": {"failed", "skipped"},
        "other_tool": {"unsupported"},
        "large": {"unsupported"},
    }
    for text in (
        "no-such-compiler (>=2 is needed)",
        "not to be had any more",
        "want 1000 CPUs of one host",
        "undefined symbol",
    ):
        assert text in run.message, run.message
    builds = {build.label: build for build in Build.objects.all()}
    assert set(builds) == {"system venv", "system plain", "system broken"}
    assert builds["system broken"].state == "failed"
    kept = Trial.objects.filter(case__label="system venv", state="measured")[0].provenance
    assert kept["install"]["name"] == builds["system venv"].installed
    assert "venv --without-pip" in kept["install"]["log"]
    assert kept["programs"]["python3"]
    assert kept["server_argv"][0].endswith(f"{kept['install']['name']}/installed/bin/python")
