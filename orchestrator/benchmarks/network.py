"""The network between load tool and server that a definition asks for. No Django."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from orchestrator.benchmarks.fields import Strict
from orchestrator.benchmarks.placeholders import find_placeholders
from orchestrator.loadtools.emulated_network import EmulatedNetwork

#: A value with a unit, or one that axes complete, such as "{delay} ms".
Quantity = Annotated[str, Field(max_length=60)]
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ%/]+)\s*\Z")
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_SHARES = {"%": 0.01}
_BITS = {"kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}

#: Shorter delays are hidden by the machine's own; longer ones are of no network on earth.
DELAYS_S = (0.001, 2.0)
#: Less jitter cannot be measured.
LEAST_JITTER_S = 0.0005
#: A lower share needs too many packets to be measured before each trial.
LOSSES = (0.001, 0.5)
#: A lower rate takes too long to measure before each trial.
RATES_BPS = (1e6, 1e10)


def parse_delay(text: str) -> float:
    """Return seconds from `20 ms`; ValueError with the expectation."""
    value = _parse(text, _SECONDS, "a time such as 20 ms")
    return _check(value, DELAYS_S, text, "0 ms, or 1 ms to 2 s")


def parse_jitter(text: str) -> float:
    """Return seconds from `2 ms`; ValueError with the expectation."""
    value = _parse(text, _SECONDS, "a time such as 2 ms")
    return _check(value, (LEAST_JITTER_S, DELAYS_S[1]), text, "0 ms, or 0.5 ms to the delay")


def parse_loss(text: str) -> float:
    """Return a share from `0.5 %`; ValueError with the expectation."""
    return _check(
        _parse(text, _SHARES, "a share such as 0.5 %"), LOSSES, text, "0 %, or 0.1 % to 50 %"
    )


def parse_rate(text: str) -> float:
    """Return bits per second from `100 Mbit/s`; ValueError with the expectation."""
    value = _parse(text, _BITS, "a rate such as 100 Mbit/s or 1 Gbit/s")
    if not value:
        raise ValueError("expected 1 Mbit/s to 10 Gbit/s; leave the rate out for an unlimited one")
    return _check(value, RATES_BPS, text, "1 Mbit/s to 10 Gbit/s")


def _parse(text: str, units: Mapping[str, float], expected: str) -> float:
    match = _QUANTITY.match(text)
    if match is None or match[2] not in units:
        raise ValueError(f"expected {expected}, got {text!r}")
    return float(match[1]) * units[match[2]]


def _check(value: float, bounds: tuple[float, float], text: str, expected: str) -> float:
    low, high = bounds
    # 0.1 % is a little less than 0.001 in floating point.
    if value and not low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
        raise ValueError(f"expected {expected}, got {text!r}")
    return value


_PARSERS: Mapping[str, Callable[[str], float]] = {
    "delay": parse_delay,
    "jitter": parse_jitter,
    "loss": parse_loss,
    "rate": parse_rate,
}


class Network(Strict):
    """An emulated network; a missing field changes nothing. All fields may name axes."""

    delay: Quantity | None = None
    jitter: Quantity | None = None
    loss: Quantity | None = None
    rate: Quantity | None = None

    @field_validator("delay", "jitter", "loss", "rate", mode="before")
    @classmethod
    def _has_unit(cls, value: object) -> object:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise ValueError(f"give the unit, such as 20 ms, 0.5 % or 100 Mbit/s; got {value}")
        return value

    @field_validator("delay", "jitter", "loss", "rate")
    @classmethod
    def _fits(cls, text: str | None, info: ValidationInfo) -> str | None:
        """Check a value that names no axis; the others are checked for each case."""
        if text is None or find_placeholders(text):
            return text
        assert info.field_name is not None
        value = _PARSERS[info.field_name](text)
        delay = info.data.get("delay", text) or "0 ms"
        if (
            info.field_name == "jitter"
            and not find_placeholders(delay)
            and value > parse_delay(delay)
        ):
            raise ValueError(f"expected at most the delay, which it varies, got {text!r}")
        return text

    @property
    def texts(self) -> dict[str, str]:
        """Return the fields with a value, by name."""
        return {name: text for name, text in self.model_dump().items() if text is not None}

    def emulate(self) -> EmulatedNetwork:
        """Return the network; no field may name an axis."""
        values = {name: _PARSERS[name](text) for name, text in self.texts.items()}
        return EmulatedNetwork(
            delay_s=values.get("delay", 0.0),
            jitter_s=values.get("jitter", 0.0),
            loss=values.get("loss", 0.0),
            rate_bps=values.get("rate"),
        )
