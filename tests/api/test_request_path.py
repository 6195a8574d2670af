"""The modules of a request to start a run: few enough to read, and listed in the documentation."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import orchestrator
from orchestrator.runs.models import Run

PACKAGE = Path(orchestrator.__file__).parent
ARCHITECTURE = PACKAGE.parent / "docs" / "architecture.md"
#: The function that writes the last rows of a run.
LAST = "insert_planned"


@contextmanager
def record_modules() -> Iterator[list[str]]:
    """Fill a list with the modules whose functions run between the endpoint and the last INSERT."""
    modules: list[str] = []
    is_inside = False

    def record(frame: FrameType, event: str, _: object) -> None:
        nonlocal is_inside
        path = Path(frame.f_code.co_filename)
        if PACKAGE not in path.parents:
            return
        module = path.relative_to(PACKAGE).as_posix()
        if event == "call" and module == "api/once.py":
            is_inside = True
        if is_inside and event == "call" and module not in modules:
            modules.append(module)
        if event == "return" and frame.f_code.co_name == LAST:
            is_inside = False

    sys.setprofile(record)
    try:
        yield modules
    finally:
        sys.setprofile(None)


def test_a_request_to_start_a_run_enters_at_most_15_modules(world, alice):
    # The first request of a process parses the definition and imports the modules of all pages.
    alice.post("runs", world.run_body())
    with record_modules() as modules:
        assert alice.post("runs", world.run_body()).status_code == 201
    assert Run.objects.count() == 2
    path = [name for name in modules if not name.startswith("core/") and "models" not in name]
    assert len(path) <= 15
    assert set(path) == read_documented_modules()


def read_documented_modules() -> set[str]:
    """The modules in the table of the documentation."""
    text = ARCHITECTURE.read_text().partition("between `POST /api/v1/runs`")[2]
    table = text.partition("\n\n|")[2].partition("\n\n")[0]
    return set(re.findall(r"`([a-z_/]+\.py)`", table))
