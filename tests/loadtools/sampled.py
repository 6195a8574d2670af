"""Answers that the agent sampled, as in ANSWER of agents/hostagent/protocol.py."""

from typing import Any


def answer(when: str, body: str = "x", **changes: Any) -> dict[str, Any]:
    plain = {
        "check": "load", "when": when, "count": 1, "at_s": None, "problem": None, "status": 200,
        "length": 13, "sha256": body, "media_type": "text/plain", "encoding": "identity",
        "closes": False, "echoes": None, "cached": False,
    }  # fmt: skip
    return {**plain, **changes}


def phases(before: str, during: str, after: str) -> list[dict[str, Any]]:
    """Answers whose bodies are the letters."""
    return [
        answer(when, body)
        for when, bodies in (("before", before), ("during", during), ("after", after))
        for body in bodies
    ]
