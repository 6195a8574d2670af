"""The hours at which a host may run jobs, such as `mon-fri 20:00-07:00; sat-sun`. Pure.

A text has parts, separated by `;`. A part has days, times, or both: days as `mon`, `mon-fri` or
`mon,wed,fri`, times as `20:00-07:00` or `09:00-12:00, 13:00-17:00`. Without days a part applies to
every day, without times to the whole day. Times are in the host's time zone. A span over midnight
belongs to the day on which it begins. An empty text means always.

If a clock change skips an hour, a time within it means the instant of the change. If an hour comes
twice, the first one is meant. Therefore adjacent spans are adjacent in real time too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from orchestrator.core.errors import InvalidRequestError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)|24:00")
#: Longer than any closed time, even if a clock change removes the only window of a week.
_HORIZON_DAYS = 16

#: Two instants; the end is excluded.
Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Open from `start` to `end`, in minutes of wall clock time since midnight of `day`.

    `day` counts from Monday as 0. `end` may be as late as midnight of the day after next.
    """

    day: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursNow:
    """Whether the host is open, and until when (in UTC) that stays so; None: permanently."""

    is_open: bool
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenHours:
    """When jobs may run; no windows means always."""

    windows: tuple[Window, ...] = ()

    @property
    def always(self) -> bool:
        return not self.windows or _count_closed_minutes(self.windows) == 0

    def seconds_left(self, now: datetime, timezone: str) -> float | None:
        """Return how long it stays open from `now` (aware); None if closed, inf without an end."""
        if self.always:
            return float("inf")
        for start, end in self._spans(now, parse_zone(timezone)):
            if start <= now < end:
                return (end - now).total_seconds()
        return None

    def next_open(self, now: datetime, timezone: str) -> datetime:
        """Return the first instant in UTC, from `now` (aware) on, at which it is open."""
        if self.always:
            return now.astimezone(UTC)
        for start, end in self._spans(now, parse_zone(timezone)):
            if now < end:
                return max(start, now.astimezone(UTC))
        raise AssertionError("a window opens at least every other week")

    def compute_state(self, now: datetime, timezone: str) -> HoursNow:
        """Return the state at `now` (aware): open or closed, and until when."""
        left = self.seconds_left(now, timezone)
        if left is None:
            return HoursNow(is_open=False, until=self.next_open(now, timezone))
        closes = None if self.always else now.astimezone(UTC) + timedelta(seconds=left)
        return HoursNow(is_open=True, until=closes)

    def _spans(self, now: datetime, zone: ZoneInfo) -> list[Span]:
        """Return the open spans from yesterday to the horizon in order, adjacent ones merged."""
        today = now.astimezone(zone).date()
        days = (today + timedelta(days=offset) for offset in range(-2, _HORIZON_DAYS))
        return _join_spans(sorted(span for day in days for span in self._build_spans(day, zone)))

    def _build_spans(self, day: date, zone: ZoneInfo) -> Iterator[Span]:
        for window in self.windows:
            if window.day == day.weekday():
                start, end = (compute_instant(day, at, zone) for at in (window.start, window.end))
                if start < end:
                    yield start, end


@lru_cache(maxsize=1024)
def parse(text: str) -> OpenHours:
    """Parse open hours. InvalidRequestError names the part that is wrong."""
    if not text.strip():
        return OpenHours()
    parts = [part.strip() for part in text.lower().split(";")]
    windows = {window for part in parts if part for window in _parse_part(part)}
    return OpenHours(windows=tuple(sorted(windows, key=lambda w: (w.day, w.start, w.end))))


@lru_cache(maxsize=256)
def parse_zone(name: str) -> ZoneInfo:
    """Return the time zone of that name. Raise InvalidRequestError if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidRequestError(
            f"expected a time zone such as UTC or Europe/Vienna, got {name!r}", field="timezone"
        ) from error


def compute_instant(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    """Return the first instant (UTC) at which the zone's clock shows that time or a later one."""
    wall = datetime.combine(day, time()) + timedelta(minutes=minutes)
    first = wall.replace(tzinfo=zone).astimezone(UTC)
    if first.astimezone(zone).replace(tzinfo=None) == wall:
        return first
    return _find_clock_change(wall.replace(tzinfo=zone, fold=1).astimezone(UTC), first, zone)


def _find_clock_change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant in between at which the zone's clock is put forward, to the second."""
    offset = after.astimezone(zone).utcoffset()
    while (after - before) > timedelta(seconds=1):
        middle = before + (after - before) / 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after


def _join_spans(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


@lru_cache(maxsize=1024)
def _count_closed_minutes(windows: tuple[Window, ...]) -> int:
    """Return how many minutes of a week without clock changes are in no window."""
    covered: set[int] = set()
    for window in windows:
        begin = window.day * _DAY_MINUTES
        covered.update(at % _WEEK_MINUTES for at in range(begin + window.start, begin + window.end))
    return _WEEK_MINUTES - len(covered)


def _parse_part(part: str) -> Iterator[Window]:
    """Yield the windows of one part: each of its days with each of its times."""
    days = re.split(r"\d", part, maxsplit=1)[0]
    times_text = part[len(days) :]
    times = [_parse_times(each.strip(), part) for each in times_text.split(",") if times_text]
    for day in _parse_days(days.strip() or "mon-sun", part):
        for start, end in times or [(0, _DAY_MINUTES)]:
            yield Window(day=day, start=start, end=end)


def _parse_days(text: str, part: str) -> Iterator[int]:
    for each in text.split(","):
        first, dash, last = (word.strip() for word in each.partition("-"))
        if first not in DAYS or (dash and last not in DAYS):
            raise _build_window_error(
                part, f"days such as mon, mon-fri or sat,sun, got {each.strip()!r}"
            )
        count = (DAYS.index(last) - DAYS.index(first)) % 7 + 1 if dash else 1
        yield from ((DAYS.index(first) + offset) % 7 for offset in range(count))


def _parse_times(text: str, part: str) -> tuple[int, int]:
    start, dash, end = (word.strip() for word in text.partition("-"))
    if not dash or not _TIME.fullmatch(start) or not _TIME.fullmatch(end) or start == "24:00":
        raise _build_window_error(part, f"times such as 20:00-07:00, got {text!r}")
    first, last = _parse_minutes(start), _parse_minutes(end)
    if first == last:
        raise _build_window_error(
            part, f"two different times, got {text!r}; leave them out for the whole day"
        )
    return first, last if last > first else last + _DAY_MINUTES


def _parse_minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def _build_window_error(part: str, expected: str) -> InvalidRequestError:
    return InvalidRequestError(f"in {part!r}: expected {expected}", field="open_hours")
