"""Dependencies that a build installs next to its tree, once for all builds with the same recipe."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.support import SERVER, AgentHost, Step, a_build, a_plan, a_server, a_trial

COUNT = "import sys; open(sys.argv[1] + '/count', 'a').write('x'); print('resolving', sys.argv[1])"
FILES = {"server.py": SERVER.format(extra=""), "requirements.txt": "hello==1\n"}
pytestmark = pytest.mark.usefixtures("source")


@pytest.fixture
def source(host: AgentHost) -> None:
    host.send_source(FILES)


def recipe(*steps: list[str], **changes: Any) -> dict[str, Any]:
    """It notes each time that it runs in the file `count`."""
    count = ["{python}", "-c", COUNT, "{installed}"]
    plain = {"key": "k1", "files": ["requirements.txt"], "timeout_s": 20}
    return {**plain, "steps": [count, *steps], **changes}


def measure(host: AgentHost, step: str, *builds: dict[str, Any], **changes: Any) -> Step:
    """One trial for each build, `step` names the step."""
    path = host.send_tool()
    trials = [
        a_trial(path, id=f"t{n}", tree=build["tree"], commit=build["commit"], **changes)
        for n, build in enumerate(builds, 1)
    ]
    return host.run_round(a_plan(*trials, step=step, builds=list(builds)))


def another(commit: str, **changes: Any) -> dict[str, Any]:
    source = {"archive": f"sources/{commit}.tar.gz"}
    name = f"{commit}-r"
    return a_build(id=name, commit=commit, source=source, tree=f"builds/{name}", **changes)


def folders(host: AgentHost) -> list[Path]:
    return sorted((host.root / "installs").glob("*/installed"))


def counts(host: AgentHost) -> list[str]:
    return [(folder / "count").read_text() for folder in folders(host)]


def test_a_server_runs_from_a_virtual_environment_of_its_own(host: AgentHost) -> None:
    venv = recipe(["{python}", "-m", "venv", "--without-pip", "{installed}"])
    extra = "print(sys.prefix, flush=True)"
    host.send_source({**FILES, "server.py": SERVER.format(extra=extra)})
    server = a_server(argv=["{installed}/bin/python", "server.py", "{port}"])
    step = measure(host, "a1-r1", a_build(install=venv), server=server)
    assert step.only("trial_done"), step.events
    (folder,) = folders(host)
    assert step.only("build_done")["installed"] == folder.parent.name
    assert (step.folder / "trials/t1/server.log").read_text().split()[0] == str(folder)
    assert step.file("t1", "result.json")["tree"] == "builds/c0ffee-r"
    log = host.verb("log", step.job, step.name, "c0ffee-r")["text"]
    assert f"resolving {folder}" in log


def test_an_install_is_shared_by_commits_with_the_same_files(host: AgentHost) -> None:
    host.send_source({**FILES, "NOTES": "another commit"}, commit="feed")
    builds = [a_build(install=recipe()), another("feed", install=recipe())]
    step = measure(host, "a1-r1", *builds)
    assert len(step.named("trial_done")) == 2
    again = measure(host, "a1-r2", builds[0])
    assert again.only("build_done")["cached"] is True
    assert counts(host) == ["x"]
    # The log of what was made before is there as well.
    for run, build in ((step, "feed-r"), (again, "c0ffee-r")):
        assert "resolving" in host.verb("log", run.job, run.name, build)["text"]


@pytest.mark.parametrize(
    ("files", "changes"),
    [({"requirements.txt": "hello==2\n"}, {}), ({}, {"key": "k2"})],
    ids=["other contents", "another recipe"],
)
def test_another_recipe_gets_another_folder(
    files: dict[str, str], changes: dict[str, Any], host: AgentHost
) -> None:
    host.send_source({**FILES, **files}, commit="feed")
    other = another("feed", install=recipe(**changes))
    measure(host, "a1-r1", a_build(install=recipe()), other)
    assert counts(host) == ["x", "x"]


def test_an_interrupted_or_removed_install_is_repeated(host: AgentHost) -> None:
    build = a_build(install=recipe())
    measure(host, "a1-r1", build)
    (folder,) = folders(host)
    (folder.parent / ".done").unlink()
    (folder / "half").touch()
    step = measure(host, "a1-r2", build)
    assert step.only("build_done")["cached"] is False
    assert sorted(path.name for path in folder.iterdir()) == ["count"]
    assert counts(host) == ["x"]
    assert step.only("trial_done")


def test_a_failed_install_fails_only_the_trials_of_its_recipe(host: AgentHost) -> None:
    strike = recipe(["{python}", "-c", "import sys; sys.exit('no such package')"])
    host.send_source(FILES, commit="feed")
    step = measure(host, "a1-r1", a_build(install=strike), another("feed", install=recipe()))
    failed = step.only("trial_failed")
    assert (failed["trial"], failed["code"]) == ("t1", "build_failed")
    assert "the install step" in failed["message"]
    assert "no such package" in failed["output"]
    assert step.only("build_failed")["build"] == "c0ffee-r"
    assert step.only("trial_done")["trial"] == "t2"


def test_a_file_that_the_commit_lacks_is_named(host: AgentHost) -> None:
    step = measure(host, "a1-r1", a_build(install=recipe(files=["Cargo.lock"])))
    assert "Cargo.lock" in step.only("trial_failed")["message"]


def test_an_install_that_takes_too_long_is_ended(host: AgentHost) -> None:
    nap = ["{python}", "-c", "import time; time.sleep(300)"]
    step = measure(host, "a1-r1", a_build(install=recipe(nap, timeout_s=0.5)))
    assert "longer than 0.5 s" in step.only("build_failed")["message"]


def test_each_recipe_of_a_commit_has_its_own_build(host: AgentHost) -> None:
    write = ["{python}", "-c", "import sys; open('which', 'w').write(sys.argv[1])"]
    builds = [
        a_build(id=f"c0ffee-{n}", label=n, tree=f"builds/c0ffee-{n}", steps=[[*write, n]])
        for n in ("one", "two")
    ]
    extra = "print(open('which').read(), flush=True)"
    host.send_source({"server.py": SERVER.format(extra=extra)})
    step = measure(host, "a1-r1", *builds)
    logs = [(step.folder / f"trials/t{n}/server.log").read_text().strip() for n in (1, 2)]
    assert logs == ["one", "two"]
    started_builds = [(each["build"], each["label"]) for each in step.named("build_started")]
    assert started_builds == [("c0ffee-one", "one"), ("c0ffee-two", "two")]


def test_programs_of_the_install_come_first_on_the_path(host: AgentHost, tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "snake").symlink_to(sys.executable)
    build = a_build(
        path=[str(bin_)],
        install=recipe(["snake", "-c", "print('install')"]),
        steps=[["snake", "-c", "print('build')"]],
    )
    server = a_server(argv=["snake", "server.py", "{port}"])
    step = measure(host, "a1-r1", build, server=server, path={"a": [str(bin_)]})
    assert step.only("trial_done"), step.events
    assert step.file("t1", "result.json")["server_argv"][0] == "snake"
