import ast
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest

from agents.hostagent import bundle
from agents.hostagent.bundle import build_bundle

SOURCES = sorted(Path(bundle.__file__).parent.glob("*.py"))


def test_it_is_the_same_file_each_time() -> None:
    assert build_bundle() == build_bundle()
    with zipfile.ZipFile(BytesIO(build_bundle().content)) as archive:
        assert {"__main__.py", "hostagent/cli.py"} <= set(archive.namelist())


def test_it_runs_from_anywhere_without_site_packages(tmp_path: Path) -> None:
    (tmp_path / "agent.pyz").write_bytes(build_bundle().content)
    argv = [sys.executable, "-I", "-S", "-W", "error", "agent.pyz", "--root", "work", "has", "a"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ('{"present": {"a": false}}\n', "")


def test_it_unpacks_itself_once_and_works_where_it_cannot(tmp_path: Path) -> None:
    agent = tmp_path / "agent.pyz"
    agent.write_bytes(build_bundle().content)
    argv = [sys.executable, str(agent), "--root", "work", "has", "a"]

    def answer() -> str:
        return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True).stdout

    def unpacked() -> list[str]:
        return [path.name for path in tmp_path.iterdir() if path != agent]

    with ThreadPoolExecutor() as pool:
        answers = {call.result() for call in [pool.submit(answer) for _ in range(4)]}
    assert answers == {'{"present": {"a": false}}\n'}
    assert unpacked() == ["agent"]
    (tmp_path / "agent/hostagent/cli.py").write_text("main = lambda: print('from the folder')")
    assert answer() == "from the folder\n"
    shutil.rmtree(tmp_path / "agent")
    (tmp_path / "agent").write_text("in the way")
    assert answer() == '{"present": {"a": false}}\n'
    assert unpacked() == ["agent"]


def test_it_is_written_in_the_python_of_3_9() -> None:
    for path in SOURCES:
        ast.parse(path.read_text("utf-8"), str(path), feature_version=(3, 9))


def test_it_imports_nothing_but_the_standard_library() -> None:
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(str(node.module).split(".")[0])
    assert found <= set(sys.stdlib_module_names)


def test_it_runs_on_python_3_9(tmp_path: Path) -> None:
    python = _python_3_9()
    if python is None:
        pytest.skip("no python3.9 on the PATH that runs")
    (tmp_path / "agent.pyz").write_bytes(build_bundle().content)
    argv = [python, "agent.pyz", "--root", "work", "status", "j1", "a1-r1"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert '"started": false' in done.stdout, done.stderr


def _python_3_9() -> str | None:
    """A python3.9 that runs: the name alone may be the empty shell of a version manager."""
    path = shutil.which("python3.9")
    works = path and subprocess.run([path, "--version"], capture_output=True).returncode == 0
    return path if works else None
