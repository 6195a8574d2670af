"""A short form of `make fuzz`, and tests that its watch finds what it should."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from devstack.places import CHECKOUT
from tests.fuzz.inputs.registry import TARGETS
from tests.fuzz.inputs.watching import encode_input, made

#: Enough for each parser to get some hundred changes of each kind of sample.
INPUTS = 6_000
#: Parsers that each do something forbidden in another way; `fine` refuses as it should.
WRONG = """
    import os, sys, socket
    from pathlib import Path
    from tests.fuzz.inputs import watching
    from tests.fuzz.inputs.target import Target

    def bug(given, folder): raise KeyError("x")
    def fine(given, folder): raise ValueError("refused")
    def silent(given, folder): raise ValueError
    def writes(given, folder): open(folder.parent / "evil", "w").close()
    def links(given, folder):
        os.symlink("..", folder / "up"); (folder / "up" / "evil").mkdir()
    def starts(given, folder): os.system("true")
    def asks(given, folder): socket.create_connection(("127.0.0.1", 9))
    def hides(given, folder):
        try: open(folder.parent / "evil", "w").close()
        except Exception: pass
    def endless(given, folder):
        while True: pass
    def inside(given, folder): (folder / "a").mkdir(); (folder / "a" / "b").write_text("x")

    watching.MOST_CPU_S = 0.2
    folder = Path(sys.argv[1])
    folder.mkdir()
    watching.begin()
    for read in (bug, fine, silent, writes, links, starts, asks, hides, endless, inside):
        target = Target(name="t", samples=lambda: [b""], change=lambda *_: b"", read=read,
                        errors=(ValueError,))
        found = watching.attempt(target, [b""], 1, 0, folder)
        print(read.__name__, found is not None, list(folder.iterdir()))
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=CHECKOUT, env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_mutated_inputs_cause_no_error_and_no_write() -> None:
    """Here the inputs are always the same; `make fuzz` tries other inputs each day."""
    done = run(
        "-m",
        "tests.fuzz.inputs",
        "--inputs",
        str(INPUTS),
        "--requests",
        "0",
        "--git-servers",
        "0",
        "--polls",
        "0",
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["inputs"] >= INPUTS
    assert summary["targets"] > 40


def test_the_watcher_detects_planted_errors(tmp_path: Path) -> None:
    done = run("-c", textwrap.dedent(WRONG), str(tmp_path / "folder"))
    results = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    fine = {name for name, result in results.items() if result == "False []"}
    assert fine == {"fine", "inside"}, done.stdout + done.stderr
    assert len(results) == 10
    assert not (tmp_path / "evil").exists()


def test_an_input_is_reproduced_by_its_number() -> None:
    for name in ("agent-plan", "reader-wrk", "definition-data"):
        target = TARGETS[name]
        samples = target.samples()
        first, again, other = (encode_input(made(target, samples, seed, 77)) for seed in (1, 1, 2))
        assert first == again != other
