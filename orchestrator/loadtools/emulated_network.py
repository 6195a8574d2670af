"""The emulated network of a case: what a definition asks for."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from cli.pitwall.units import format_percent, format_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedNetwork:
    """`delay_s` is added to a round trip, half in each direction, and varies by up to `jitter_s`.

    `loss`: the share of packets that is lost, and `rate_bps` bits per second, in each direction;
    None is unlimited.
    """

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    rate_bps: float | None = None

    @property
    def properties(self) -> frozenset[str]:
        """Return the names of what it changes, as a definition and the facts of a host name it."""
        wanted = {
            "delay": self.delay_s,
            "jitter": self.jitter_s,
            "loss": self.loss,
            "rate": self.rate_bps,
        }
        return frozenset(name for name, value in wanted.items() if value)

    @property
    def may_lose(self) -> bool:
        """Return whether it loses packets: by chance, or in the full queue before its rate."""
        return bool(self.loss) or self.rate_bps is not None

    @property
    def setup_s(self) -> float:
        """Estimate how long it takes to set it up and to measure it, in seconds."""
        counting = 2 * min(3.0, 50 / self.loss / 20_000) if self.loss else 0.0
        return 1.0 + 4 * self.delay_s + counting + (1.5 if self.rate_bps else 0.0)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        """Return `20 ms ± 2 ms round trip, 0.5 % loss, 100 Mbit/s`."""
        return ", ".join(self._list_parts())

    def _list_parts(self) -> Iterator[str]:
        spread = f" ± {format_seconds(self.jitter_s)}" if self.jitter_s else ""
        yield f"{format_seconds(self.delay_s)}{spread} round trip" if self.delay_s else "no delay"
        if self.loss:
            yield f"{format_percent(self.loss)} loss"
        if self.rate_bps is not None:
            yield format_bit_rate(self.rate_bps)


def format_bit_rate(bits_per_s: float) -> str:
    """Return bits per second with a unit, such as `100 Mbit/s`."""
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_s >= factor:
            return f"{bits_per_s / factor:.3g} {unit}"
    return f"{bits_per_s:.3g} bit/s"
