"""Dependencies that a build installs next to its tree, once for all builds with the same recipe."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.support import (
    PYTHON,
    SERVER,
    AgentHost,
    Step,
    a_build,
    a_plan,
    a_server,
    a_trial,
)
from tests.support.python_package import PYPROJECT
from tests.support.waiting import wait_until

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


PACKAGE = {
    "pyproject.toml": PYPROJECT,
    "setup.cfg": "",
}
#: The package is not next to this script, so Python finds only an installed one.
GREET = """
import glob, site
for folder in glob.glob(sys.argv[2] + "/lib/python*/site-packages"):
    site.addsitedir(folder)
import greeter
print(greeter.WHO, flush=True)
"""
PIP_INSTALL = ["{python}", "-m", "pip", "install", "--no-build-isolation", "--no-index"]
INTO_INSTALLED = ["--no-deps", "--target", "{installed}"]


def send_package(host: AgentHost, commit: str, who: str) -> dict[str, Any]:
    """A commit of a Python package that its server needs; return the fields of its build."""
    server = SERVER.format(extra=GREET)
    files = {**PACKAGE, "greeter.py": f"WHO = {who!r}\n", "run/server.py": server}
    host.send_source({**files, **FILES, "server.py": "", "README": who}, commit)
    return {
        "id": f"{commit}-r",
        "commit": commit,
        "tree": f"builds/{commit}-r",
        "source": {"archive": f"sources/{commit}.tar.gz"},
    }


def measure_greeters(host: AgentHost, **build: Any) -> tuple[Step, list[str]]:
    """Measure two commits that greet as Ada and as Bob; return who greeted."""
    if sys.executable != PYTHON:
        pytest.skip("only the Python of the tests certainly has pip and setuptools")
    builds = [
        a_build(**send_package(host, "ada", "Ada"), **build),
        a_build(**send_package(host, "bob", "Bob"), **build),
    ]
    argv = ["{python}", "run/server.py", "{port}", "{installed}"]
    server = a_server(argv=argv, env={"PYTHONPATH": "{installed}"})
    step = measure(host, "a1-r1", *builds, server=server)
    logs = [step.folder / f"trials/t{n}/server.log" for n in (1, 2)]
    return step, [log.read_text().strip() for log in logs if log.exists()]


def test_an_install_step_that_reads_the_source_fails_and_says_what_to_write(
    host: AgentHost,
) -> None:
    install = recipe([*PIP_INSTALL, *INTO_INSTALLED, "."])
    step, greeted = measure_greeters(host, install=install)
    assert greeted == []
    messages = [event["message"] for event in step.named("build_failed")]
    assert len(messages) == 2
    for message in messages:
        assert "Install steps see only these files of the commit: requirements.txt." in message
        assert "The commit also has pyproject.toml" in message
        assert "subject.install.files" in message
        assert "subject.build" in message


@pytest.mark.parametrize(
    "files", [["."], ["pyproject.toml", "greeter.py"]], ids=["whole commit", "named files"]
)
def test_an_install_of_named_source_is_one_for_each_content(
    files: list[str], host: AgentHost
) -> None:
    install = recipe([*PIP_INSTALL, *INTO_INSTALLED, "."], files=files)
    step, greeted = measure_greeters(host, install=install)
    assert greeted == ["Ada", "Bob"], step.events
    assert counts(host) == ["x", "x"]


def test_an_editable_install_refers_to_its_own_copy_of_the_source(host: AgentHost) -> None:
    install = recipe([*PIP_INSTALL, "--prefix", "{installed}", "--editable", "."], files=["."])
    step, greeted = measure_greeters(host, install=install)
    assert greeted == ["Ada", "Bob"], step.events


def test_a_folder_among_the_files_counts_with_all_it_contains(host: AgentHost) -> None:
    copy = ["{python}", "-c", "import shutil, sys; shutil.copytree('lib', sys.argv[1] + '/lib')"]
    builds = []
    for commit, text in (("one", "1"), ("two", "2"), ("three", "1")):
        host.send_source({**FILES, "lib/deep/value": text, "NOTES": commit}, commit)
        install = recipe([*copy, "{installed}"], files=["lib"])
        builds.append(another(commit, install=install))
    step = measure(host, "a1-r1", *builds)
    assert len(step.named("trial_done")) == 3, step.events
    values = {(folder / "lib/deep/value").read_text() for folder in folders(host)}
    assert (values, counts(host)) == ({"1", "2"}, ["x", "x"])


def test_the_tree_of_an_install_step_is_the_folder_with_its_files(host: AgentHost) -> None:
    look = "import os, sys; print(sorted(os.listdir()), os.getcwd() == sys.argv[1])"
    build = a_build(install=recipe(["{python}", "-c", look, "{tree}"]))
    step = measure(host, "a1-r1", build)
    log = host.verb("log", step.job, step.name, "c0ffee-r")["text"]
    assert "['requirements.txt'] True" in log


def test_a_link_to_a_file_outside_of_the_commit_is_no_input(host: AgentHost) -> None:
    secret = host.root / "secret"
    secret.write_text("s3cret")
    shas = commit_link(host, "lock", secret)
    step = measure(host, "a1-r1", a_build(**shas, install=recipe(files=["lock"])))
    assert "lock: it cannot be read: it leads outside" in step.only("build_failed")["message"]
    assert not list((host.root / "installs").glob("*/source/lock"))


def commit_link(host: AgentHost, name: str, to: Path) -> dict[str, Any]:
    """A commit with a symbolic link, in a repository of the host."""
    path = host.root / "repositories/p.git"
    origin = host.root.parent / "origin"
    origin.mkdir()
    (origin / "server.py").write_text(FILES["server.py"])
    (origin / name).symlink_to(to)
    git = ["git", "-C", str(origin), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "link"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(origin), str(path)], check=True)
    found = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    sha = found.stdout.strip()
    return {"commit": sha, "source": {"repository": "p"}}


def test_a_build_step_that_writes_to_a_shared_install_fails(host: AgentHost) -> None:
    step, greeted = measure_greeters(
        host, install=recipe(), steps=[[*PIP_INSTALL, *INTO_INSTALLED, "."]]
    )
    assert greeted == []
    messages = [event["message"] for event in step.named("build_failed")]
    assert len(messages) == 2
    for message in messages:
        assert "the build steps changed {installed}" in message
        assert "greeter-1.dist-info" in message
    assert folders(host) == []


def test_a_build_step_that_removes_the_shared_install_fails(host: AgentHost) -> None:
    steps = [["rm", "-r", "{installed}"]]
    step = measure(host, "a1-r1", a_build(install=recipe(), steps=steps))
    assert "changed {installed}" in step.only("build_failed")["message"]
    assert step.only("round_done")


NEST = """
import os, sys
os.chdir(sys.argv[1])
for _ in range(30):
    os.mkdir("x" * 200)
    os.chdir("x" * 200)
"""


@pytest.mark.parametrize("place", ["{tree}", "{installed}"])
def test_folders_that_are_too_deep_to_be_read_fail_only_their_build(
    place: str, host: AgentHost
) -> None:
    nesting = a_build(
        id="c0ffee-w",
        tree="builds/c0ffee-w",
        install=recipe(),
        steps=[["{python}", "-c", NEST, place]],
    )
    step = measure(host, "a1-r1", nesting, a_build(install=recipe()))
    assert "File name too long" in step.only("build_failed")["message"]
    assert step.only("trial_done")["trial"] == "t2", step.events
    assert counts(host) == ["x"]


def test_a_build_that_needs_a_changed_install_gets_a_new_one(host: AgentHost) -> None:
    changing = a_build(
        id="c0ffee-w",
        tree="builds/c0ffee-w",
        install=recipe(),
        steps=[["{python}", "-c", "open(__import__('sys').argv[1] + '/count', 'a').write('y')",
                "{installed}"]],
    )  # fmt: skip
    step = measure(host, "a1-r1", a_build(install=recipe()), changing)
    assert step.only("trial_done")["trial"] == "t1", step.events
    assert step.only("trial_failed")["trial"] == "t2"
    assert step.only("build_failed")["build"] == "c0ffee-w"
    assert counts(host) == ["x"]


def test_an_install_is_new_after_a_build_was_killed_that_could_write_to_it(
    host: AgentHost,
) -> None:
    write = "import sys, time; open(sys.argv[1] + '/half', 'w'); print('wrote', flush=True)"
    steps = [["{python}", "-c", f"{write}; time.sleep(300)", "{installed}"]]
    host.send_tool()
    step = host.start(a_plan(builds=[a_build(install=recipe(), steps=steps)]))
    wait_until(lambda: list((host.root / "installs").glob("*/installed/half")), "no half file")
    os.kill(step.pid, signal.SIGKILL)
    step.await_end()
    host.send_source({**FILES, "NOTES": "another commit"}, commit="feed")
    again = measure(host, "a1-r2", another("feed", install=recipe()))
    assert again.only("trial_done"), again.events
    (folder,) = folders(host)
    assert [path.name for path in folder.iterdir()] == ["count"]
