"""Settings of a host that make its measurements steadier, with the allowed values. Pure.

The agent's `tuning.py` applies them for a round and then restores the previous values.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.core.errors import InvalidRequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """`words` are the allowed values; if there are none, `pattern` describes them."""

    title: str
    expected: str
    words: tuple[str, ...] = ()
    pattern: str = ""

    def takes(self, word: str) -> bool:
        return word in self.words if self.words else bool(re.fullmatch(self.pattern, word))


KNOBS: Mapping[str, Knob] = {
    "governor": Knob(
        title="CPU governor",
        expected="a governor of the host, such as performance",
        pattern=r"[a-z_]{1,30}",
    ),
    "turbo": Knob(title="Turbo", expected="on or off", words=("on", "off")),
    "smt": Knob(title="SMT (hyper-threading)", expected="on or off", words=("on", "off")),
    "aslr": Knob(title="Address randomisation", expected="on or off", words=("on", "off")),
    "swappiness": Knob(
        title="Swappiness",
        expected="a number from 0 to 200",
        pattern=r"\d|[1-9]\d|1\d\d|200",
    ),
}


def check_tuning(tuning: Mapping[str, object]) -> dict[str, str]:
    """Return the knobs that are set, in the agent's form; empty values are left out."""
    wanted = {name: str(value).strip() for name, value in tuning.items() if value not in ("", None)}
    for name, word in wanted.items():
        if name not in KNOBS:
            raise InvalidRequestError(
                f"there is no setting {name!r}; there are: {', '.join(KNOBS)}", field="tuning"
            )
        if not KNOBS[name].takes(word):
            raise InvalidRequestError(
                f"{name}: expected {KNOBS[name].expected}, got {word!r}", field=f"tuning.{name}"
            )
    return wanted
