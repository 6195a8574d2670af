"""A user's regular expression, searched for by a process of its own: some never come to an end."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Optional

_PROGRAM = """\
import json, re, sys
asked = json.load(sys.stdin)
print(json.dumps(re.search(asked["pattern"], asked["text"]) is not None))
"""


def search_problem(pattern: str, text: str, timeout_s: float) -> Optional[str]:
    """None where `pattern` is found anywhere in `text`; else why not."""
    argv = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    asked = json.dumps({"pattern": pattern, "text": text})
    try:
        done = subprocess.run(
            argv, input=asked, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"a body in which {pattern!r} was searched for {timeout_s:g} s, without an end"
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:]
        return f"a body in which {pattern!r} cannot be searched for: {''.join(said)}"
    return None if json.loads(done.stdout) else f"body {text[:200]!r} without {pattern!r}"
