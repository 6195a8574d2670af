"""SciPy's special functions are imported when they are used."""

import subprocess
import sys

import pytest

from orchestrator.stats import special

STARTED = """
import sys
from orchestrator.config import celery_app
celery_app.loader.import_default_modules()
print("scipy" in sys.modules, "orchestrator.stats.special" in sys.modules)
"""


def test_a_worker_starts_without_scipy() -> None:
    done = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_functions_are_those_of_scipy() -> None:
    assert special.ndtr(0.0) == 0.5
    assert special.stdtrit(10, 0.975) == pytest.approx(2.228139)
    assert "ndtr" in vars(special), "the next use finds it"
    with pytest.raises(AttributeError, match="no_such_function"):
        special.no_such_function(1)
