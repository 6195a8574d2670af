"""The load as oha was really asked for it: read back from the argv that the agent kept."""

import re
from collections.abc import Sequence

from orchestrator.loadtools.model import LoadFacts, ToolOutputError

_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+)(ms|s|m|h)\Z")


def load_facts(argv: Sequence[str], *, warmup_s: float) -> LoadFacts:
    """Model, connections, rate and end of the load; ToolOutputError where argv does not say."""
    rate = _value(argv, "-q")
    duration, requests = _value(argv, "-z"), _value(argv, "-n")
    connections = _value(argv, "-c")
    if connections is None or (duration is None and requests is None):
        raise ToolOutputError("result.json: argv is not that of an oha load: -c, and -z or -n")
    try:
        return LoadFacts(
            model="closed" if rate is None else "open",
            connections=int(connections),
            tool_cpus=int(_value(argv, "--worker-threads") or 1),
            rate=None if rate is None else float(rate),
            duration_s=None if duration is None else _seconds(duration) - warmup_s,
            requests=None if requests is None else int(requests),
            warmup_s=warmup_s,
        )
    except ValueError as error:
        raise ToolOutputError(f"result.json: argv of oha: {error}") from error


def _value(argv: Sequence[str], flag: str) -> str | None:
    places = [place for place, word in enumerate(argv[:-1]) if word == flag]
    return argv[places[0] + 1] if places else None


def _seconds(text: str) -> float:
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    return int(match.group(1)) * _UNITS_S[match.group(2)]
