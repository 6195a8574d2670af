"""The server of a commit is measured, and never that of another commit with the same install."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.benchmarks.models import Benchmark
from orchestrator.comparisons.compare import compare_commits
from orchestrator.runs.models import Build, Run, Trial
from tests.support.engine import Engine, assert_measured, running_engine, server
from tests.support.factories import Personas, make_definition, make_project, make_shared_host
from tests.support.factories import make_run as run_of
from tests.support.python_package import PYPROJECT

pytestmark = pytest.mark.engine

#: Answers with the name in the installed package; the folder of the commit is not searched.
SERVER = server(body="WHO", start="sys.path.pop(0)\nimport greeter")["server.py"].replace(
    "'WHO'", "greeter.WHO"
)
DEFINITION = dedent(
    """\
    version: 1
    title: Greetings
    subject:
      install:
        files: FILES
        steps: [[STEP]]
      env: {PYTHONPATH: "{installed}"}
      start: ["{python}", server.py, --port, "{port}"]
      ready: {path: /hello, timeout_s: 10}
    load: {path: /hello, connections: 2, duration_s: 1, warmup_s: 0.2}
    rounds: 2
    cooldown_s: 0
    """
)
PIP = '-m, pip, install, --no-deps, --no-build-isolation, --no-index, --target, "{installed}", .'


def a_version(who: str) -> dict[str, str]:
    return {
        "greeter.py": f"WHO = {who!r}\n",
        "pyproject.toml": PYPROJECT,
        "requirements.txt": "",
        "server.py": SERVER,
    }


@pytest.fixture
def engine(team: Personas, tmp_path: Path) -> Iterator[Engine]:
    with running_engine(tmp_path) as running:
        yield running


def measure(team: Personas, tmp_path: Path, *, files: str, step: str) -> Run:
    """A run of a commit of Ada, one of Bob, and one that changes nothing."""
    versions = [a_version("Ada"), a_version("Bob"), a_version("Bob")]
    project, shas = make_project(team.alice, tmp_path / "origin", versions)
    source = DEFINITION.replace("FILES", files).replace("STEP", step)
    make_definition(team.alice, project, source=source)
    make_shared_host(team.alice)
    return run_of(team.alice, shas)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.slow
def test_each_commit_is_measured_with_the_package_of_its_own_source(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    run = engine.finish(measure(team, tmp_path, files='["."]', step=f'"{{python}}", {PIP}'))
    assert_measured(run)
    ada, bob, same = (variant.commit for variant in run.variants.order_by("position"))
    kept = {
        trial.variant.commit_id: trial.provenance
        for trial in Trial.objects.filter(job__run=run, state="measured").select_related("variant")
    }
    answers = {pk: provenance["checks"][0]["sha256"] for pk, provenance in kept.items()}
    assert answers == {ada.pk: sha256("Ada"), bob.pk: sha256("Bob"), same.pk: sha256("Bob")}
    builds = {build.commit_id: build for build in Build.objects.filter(job__run=run)}
    for pk, provenance in kept.items():
        assert provenance["build"] == {
            "digest": builds[pk].digest,
            "source_digest": builds[pk].source_digest,
            "checked": True,
        }
    assert builds[bob.pk].digest == builds[same.pk].digest != builds[ada.pk].digest
    assert builds[bob.pk].installed == builds[same.pk].installed != builds[ada.pk].installed
    benchmark = Benchmark.objects.select_related("project").get()
    for contender, noted in ((ada, False), (same, True)):
        report = compare_commits(team.alice, benchmark=benchmark, baseline=bob, contender=contender)
        assert any("gave the same build" in note for note in report.notes) is noted


def test_an_install_that_reads_unnamed_source_measures_nothing(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    # A shell hides the command from the check of the definition.
    step = f"""sh, -c, 'exec "$@"', sh, "{{python}}", {PIP}"""
    run = engine.finish(measure(team, tmp_path, files="[requirements.txt]", step=step))
    assert run.state == "failed"
    assert not Trial.objects.filter(job__run=run, state="measured").exists()
    assert "Install steps see only these files of the commit: requirements.txt." in run.message
    assert "pyproject.toml" in run.message
    assert "subject.install.files" in run.message
