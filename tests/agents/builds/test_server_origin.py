"""The server of a trial runs from the build of its commit, and digests identify that build."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.pair import needs_linux
from tests.agents.support import (
    SERVER,
    AgentHost,
    Step,
    a_build,
    a_plan,
    a_server,
    a_trial,
)

PLAIN = SERVER.format(extra="")


def commit(host: AgentHost, name: str, files: dict[str, str], **changes: Any) -> dict[str, Any]:
    """The build of a commit of this name with these files."""
    host.send_source(files, name)
    source = {"archive": f"sources/{name}.tar.gz"}
    tree = f"builds/{name}-r"
    return a_build(id=f"{name}-r", commit=name, source=source, tree=tree, **changes)


def measure(host: AgentHost, *builds: dict[str, Any], **server: Any) -> Step:
    """One trial of each build."""
    tool = host.send_tool()
    trials = [
        a_trial(
            tool,
            id=f"t{number}",
            tree=build["tree"],
            commit=build["commit"],
            server=a_server(**server),
        )
        for number, build in enumerate(builds, 1)
    ]
    return host.run_round(a_plan(*trials, builds=list(builds)))


def built(step: Step, trial: str = "t1") -> dict[str, Any]:
    found: dict[str, Any] = step.file(trial, "result.json")["build"]
    return found


def refuse(step: Step) -> str:
    failed = step.only("trial_failed")
    assert failed["code"] == "wrong_build"
    message: str = failed["message"]
    assert "does not run from the build of its commit" in message
    return message


@needs_linux
def test_a_server_of_the_build_is_checked_and_identified(host: AgentHost) -> None:
    builds = [
        commit(host, "one", {"server.py": PLAIN, "deep/a": "1"}),
        commit(host, "same", {"server.py": PLAIN, "deep/a": "1"}),
        commit(host, "content", {"server.py": PLAIN, "deep/a": "2"}),
        commit(host, "name", {"server.py": PLAIN, "deep/b": "1"}),
    ]
    step = measure(host, *builds)
    found = [built(step, f"t{number}") for number in range(1, 5)]
    assert [each["checked"] for each in found] == [True] * 4
    assert found[0] == found[1]
    assert len({each["build"] for each in found}) == 3
    assert len({each["source"] for each in found}) == 3
    # Python's caches and the log of the server do not count, so a later round reads the same.
    again = host.run_round(a_plan(a_trial("tools/fake", tree="builds/one-r", commit="one"),
                                  step="a1-r2", builds=builds[:1]))  # fmt: skip
    assert built(again) == found[0]


def test_the_digest_of_a_build_contains_what_its_steps_wrote(host: AgentHost) -> None:
    def writing(text: str) -> list[list[str]]:
        return [["{python}", "-c", f"import os; {text}; import json"]]

    files = {"server.py": PLAIN}
    random = writing("open('out', 'wb').write(os.urandom(8))")
    builds = [
        commit(host, "one", files, steps=random),
        commit(host, "two", files, steps=random),
        commit(host, "three", files, steps=writing("open('out', 'w').write('3')")),
    ]
    step = measure(host, *builds)
    one, two, three = (built(step, f"t{number}") for number in (1, 2, 3))
    assert one["source"] == two["source"] != three["source"]
    assert len({each["build"] for each in (one, two, three)}) == 3


@needs_linux
def test_a_server_from_another_build_fails_the_trial(host: AgentHost) -> None:
    other = commit(host, "other", {"server.py": PLAIN})
    mine = commit(host, "mine", {"README": ""})
    argv = ["{python}", "../../other-r/tree/server.py", "{port}"]
    host.run_round(a_plan(builds=[other], step="a1-r1"))
    step = host.run_round(
        a_plan(
            a_trial(host.send_tool(), tree="builds/mine-r", commit="mine",
                    server=a_server(argv=argv)),
            step="a1-r2",
            builds=[mine],
        )
    )  # fmt: skip
    message = refuse(step)
    assert str(host.root / "builds/other-r/tree/server.py") in message
    assert "belongs to another build" in message


@needs_linux
def test_a_script_that_a_later_build_replaced_fails_the_trial(
    host: AgentHost, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.py"
    steps = [["{python}", "-c", f"import shutil; shutil.copy('server.py', {str(shared)!r})"]]
    builds = [commit(host, name, {"server.py": PLAIN}, steps=steps) for name in ("one", "two")]
    step = measure(host, *builds, argv=["{python}", str(shared), "{port}"])
    message = refuse(step)
    assert step.only("trial_failed")["trial"] == "t1"
    assert f"it uses {shared}, which the build of another commit has written since" in message
    # The script is that of the second one.
    assert built(step, "t2")["checked"] is True


@needs_linux
def test_a_program_that_a_later_failed_build_replaced_fails_the_trial(
    host: AgentHost, tmp_path: Path
) -> None:
    """As `cargo install` without --root does."""
    program, python = tmp_path / "program", os.path.realpath(sys.executable)
    copy = f"import shutil; shutil.copy({python!r}, {str(program)!r})"
    steps = [["{python}", "-c", copy], ["{python}", "check.py"]]
    builds = [
        commit(host, "mine", {"server.py": PLAIN, "check.py": ""}, steps=steps),
        commit(host, "failing", {"server.py": PLAIN, "check.py": "1/0"}, steps=steps),
    ]
    step = measure(
        host,
        *builds,
        argv=[str(program), "server.py", "{port}"],
        env={"PYTHONHOME": sys.base_prefix},
    )
    failed = {each["trial"]: each for each in step.named("trial_failed")}
    assert failed["t1"]["code"] == "wrong_build"
    assert f"it uses {program}, which the build of another" in failed["t1"]["message"]
    assert failed["t2"]["code"] == "build_failed"


@needs_linux
def test_a_runtime_that_the_first_build_downloaded_serves_all(
    host: AgentHost, tmp_path: Path
) -> None:
    runtime, python = tmp_path / "runtime", os.path.realpath(sys.executable)
    get = f"import os, shutil; os.path.exists({str(runtime)!r}) or "
    steps = [["{python}", "-c", f"{get}shutil.copy({python!r}, {str(runtime)!r})"]]
    builds = [
        commit(host, name, {"server.py": PLAIN, "name": name}, steps=steps)
        for name in ("one", "two")
    ]
    step = measure(
        host,
        *builds,
        argv=[str(runtime), "server.py", "{port}"],
        env={"PYTHONHOME": sys.base_prefix},
    )
    assert [built(step, trial)["checked"] for trial in ("t1", "t2")] == [True, True]


@needs_linux
def test_a_server_that_has_nothing_of_the_build_fails_the_trial(host: AgentHost) -> None:
    inline = PLAIN.replace('"', "'")
    build = commit(host, "mine", {"README": ""})
    move = "import os; os.chdir('/')\n"
    step = measure(host, build, argv=["{python}", "-c", move + inline, "{port}"])
    message = refuse(step)
    assert "in /, and neither they nor a file in its command belong to the build" in message
    assert "{tree}" in message


@needs_linux
@pytest.mark.parametrize("script", ["server.py", "{tree}/server.py"])
def test_a_server_may_change_its_folder(script: str, host: AgentHost) -> None:
    source = SERVER.format(extra="os.chdir('/')")
    step = measure(host, commit(host, "mine", {"server.py": source}),
                   argv=["{python}", script, "{port}"])  # fmt: skip
    assert built(step)["checked"] is True


@needs_linux
def test_a_server_may_run_from_its_install(host: AgentHost) -> None:
    install = {
        "key": "k",
        "files": ["server.py"],
        "steps": [["cp", "server.py", "{installed}"]],
        "timeout_s": 20,
    }
    build = commit(host, "mine", {"server.py": PLAIN}, install=install)
    argv = ["sh", "-c", "cd / && exec {python} {installed}/server.py {port}"]
    step = measure(host, build, argv=argv)
    assert built(step)["checked"] is True
