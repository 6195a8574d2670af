import ast
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest

from agents.hostagent import bundle
from agents.hostagent.bundle import PACKAGES, build_bundle
from agents.hostagent.unpacking import unpack
from tests.support.programs import missing, oldest_python
from tests.support.webservers import Reply, Site, http2, serving

SOURCES = sorted(Path(bundle.__file__).parent.rglob("*.py"))


def test_bundle_is_reproducible() -> None:
    assert build_bundle() == build_bundle()
    with zipfile.ZipFile(BytesIO(build_bundle().content)) as archive:
        assert {"__main__.py", "hostagent/cli.py"} <= set(archive.namelist())


def test_bundle_name_is_a_hash_of_its_content_with_the_http2_packages() -> None:
    bundle = build_bundle()
    with zipfile.ZipFile(BytesIO(bundle.content)) as archive:
        names = archive.namelist()
        digest = hashlib.sha256(b"".join(archive.read(name) for name in names)).hexdigest()
    assert bundle.name == f"{digest[:32]}.pyz"
    for package in PACKAGES:
        assert {f"{package}/__init__.py", f"{package}/LICENSE"} <= set(names)


def test_bundle_runs_from_anywhere_without_site_packages(tmp_path: Path) -> None:
    (tmp_path / "agent.pyz").write_bytes(build_bundle().content)
    argv = [sys.executable, "-I", "-S", "-W", "error", "agent.pyz", "--root", "work", "has", "a"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ('{"present": {"a": false}}\n', "")


def test_bundle_unpacks_itself_once_and_works_where_it_cannot(tmp_path: Path) -> None:
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


def test_bundle_is_valid_python_3_9() -> None:
    for path in SOURCES:
        ast.parse(path.read_text("utf-8"), str(path), feature_version=(3, 9))


def test_bundle_imports_only_the_standard_library_and_h2_in_one_module() -> None:
    outside = {path.name: _imported(path) - set(sys.stdlib_module_names) for path in SOURCES}
    assert {name: modules for name, modules in outside.items() if modules} == {"http2.py": {"h2"}}


def _imported(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules.add(str(node.module).split(".")[0])
    return modules


@pytest.mark.parametrize("unpacked", [True, False], ids=["folder", "file"])
@pytest.mark.parametrize("version", ["this", "3.9"])
def test_bundle_speaks_http2_with_its_own_packages(
    tmp_path: Path, version: str, unpacked: bool
) -> None:
    python = sys.executable if version == "this" else oldest_python()
    if python is None:
        missing("python3.9")
    agent = tmp_path / "agent.pyz"
    agent.write_bytes(build_bundle().content)
    if unpacked:
        unpack(str(agent), str(tmp_path / "agent"))
        agent = tmp_path / "agent"
    with serving(http2(Site({"/hello": Reply(body=b"Hello, World!")}))) as port:
        argv = [python, "-I", "-S", "-W", "error", "-c", _ASKS_TWICE, str(agent), str(port)]
        done = subprocess.run(argv, capture_output=True, text=True)
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "h1": ["HTTP/2 instead of HTTP/1.1", False],
        "h2": [None, True],
    }


#: Over HTTP/1.1 and over HTTP/2: what is wrong, and whether h2 has been loaded by then.
_ASKS_TWICE = """
import json, sys
sys.path[:0] = [sys.argv[1]]
from hostagent.http.checks import find_ready_problem
from hostagent.step.plan import Ready
results = {}
for protocol in ("h1", "h2"):
    ready = Ready("/hello", 200, "Hello, World!", 10.0, protocol)
    problem = find_ready_problem("127.0.0.1", int(sys.argv[2]), ready, None)
    results[protocol] = [problem and problem.partition(" for ")[0], "h2" in sys.modules]
print(json.dumps(results))
"""


def test_bundle_runs_on_python_3_9(tmp_path: Path) -> None:
    python = oldest_python()
    if python is None:
        missing("python3.9")
    (tmp_path / "agent.pyz").write_bytes(build_bundle().content)
    argv = [python, "agent.pyz", "--root", "work", "status", "j1", "a1-r1"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert '"started": false' in done.stdout, done.stderr
