"""Elements of static pictures in SVG. Pure: text is escaped, coordinates are rounded."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from unicodedata import east_asian_width
from xml.sax.saxutils import escape, quoteattr

from cli.pitwall.units import format_number

FONT_SIZE = 13.0
SMALL = 12.0
#: The mean width of a character, as a share of the size of the font.
_NARROW, _WIDE = 0.57, 1.05
#: What XML 1.0 cannot contain.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Return the text on one line, without characters that XML does not allow."""
    return " ".join(_NO_XML.sub("\ufffd", text).split())


def element(name: str, content: str = "", **attributes: str | float) -> str:
    """Return an element; `content` is markup. `class_` and `stroke_width` are usual names."""
    pairs = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_format(value))}"
        for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{content}</{name}>" if content else f"<{name}{pairs}/>"


def group(parts: Sequence[str], title: str = "", **attributes: str | float) -> str:
    """Return a group; browsers show `title` while the pointer is over it."""
    head = element("title", escape(clean(title))) if title else ""
    return element("g", head + "".join(parts), **attributes)


def text(content: str, x: float, y: float, **attributes: str | float) -> str:
    """Return a text whose vertical middle is at `y`."""
    shown = escape(clean(content))
    return element("text", shown, x=x, y=y, dy="0.35em", **attributes) if shown else ""


def path(points: Sequence[tuple[float, float]], *, closed: bool = False) -> str:
    """Return the `d` of straight lines between the points."""
    corners = "L".join(f"{_format(x)} {_format(y)}" for x, y in points)
    return f"M{corners}{'Z' if closed else ''}"


def measure(content: str, size: float = FONT_SIZE) -> float:
    """Return the estimated width of a text in pixels."""
    wide = sum(east_asian_width(each) in "WF" for each in content)
    return size * (_NARROW * (len(content) - wide) + _WIDE * wide)


def shorten(content: str, width: float, size: float = FONT_SIZE) -> str:
    """Return the text, without its middle if it is wider: names often differ at their ends."""
    shown = clean(content)
    if measure(shown, size) <= width:
        return shown
    most = max(3, int(width / (size * _NARROW)) - 1)
    end = most // 3
    cut = f"{shown[: most - end]}…{shown[len(shown) - end :]}"
    while most > 3 and measure(cut, size) > width:
        most -= 1
        end = most // 3
        cut = f"{shown[: most - end]}…{shown[len(shown) - end :]}"
    return cut


def wrap(content: str, width: float, size: float = FONT_SIZE, lines: int = 3) -> list[str]:
    """Return the text as at most `lines` lines of this width."""
    rows: list[str] = []
    for word in clean(content).split():
        if rows and (len(rows) == lines or measure(f"{rows[-1]} {word}", size) <= width):
            rows[-1] += f" {word}"
        else:
            rows.append(word)
    return [shorten(row, width, size) for row in rows]


def choose_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers from at most `low` to at least `high`, about `count` steps apart.

    The axis covers at least a billionth of the values, because ticks of a shorter one differ only
    in digits that a float cannot hold.
    """
    span = max(high - low, 1e-9 * max(abs(low), abs(high))) if high != low else abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / count))
    step = next(size * each for each in (1, 2, 2.5, 5, 10) if span / (size * each) <= count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def choose_log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten around positive numbers; fewer over many powers.

    These are at least two.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = [f * 10.0**power for power in range(first, last + 1) for f in factors]
    below = max((each for each in ticks if each <= low * (1 + 1e-9)), default=ticks[0])
    # Equal values also have two ticks.
    enough = (each for each in ticks if each >= high * (1 - 1e-9) and each > below)
    above = min(enough, default=ticks[-1])
    kept = [each for each in ticks if below <= each <= above]
    stride = max(1, math.ceil(len(kept) / 10))
    return kept[::stride] if kept[-1] in kept[::stride] else [*kept[::stride], kept[-1]]


def format_tick(value: float, ticks: Sequence[float]) -> str:
    """Return the label of a tick, with as many decimals as its neighbours need."""
    steps = [abs(b - a) for a, b in pairwise(ticks) if b != a]
    step = min(steps, default=1.0)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if round(step, decimals) != round(step, decimals + 1):
        decimals += 1
    return format_number(value, decimals=min(decimals, 9))


def format_log_tick(value: float) -> str:
    decimals = max(0, -math.floor(math.log10(value) + 1e-9))
    return format_number(value, decimals=min(decimals, 9))


def _format(value: str | float) -> str:
    if isinstance(value, str):
        return _NO_XML.sub("\ufffd", value)
    return f"{value:.1f}".removesuffix(".0")
