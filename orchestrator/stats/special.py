"""The functions of `scipy.special`. SciPy is imported when the first one is used.

Its import takes a fifth of the CPU time in which a process of Django starts, and most processes
compute no statistics.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a function of SciPy, as for a name that this module does not define (PEP 562)."""
    function = getattr(import_module("scipy.special"), name)
    # The next use finds the name here.
    globals()[name] = function
    return function
