"""When a host may run jobs: what the words mean, and that no clock change opens or closes a gap."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.open_hours import DAYS, OpenHours, parse, parse_zone

#: With clock changes in both directions, of an hour, of half an hour, and of a whole day.
ZONES = ("UTC", "Europe/Vienna", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia")
NIGHTS = "mon-fri 20:00-07:00; sat-sun"


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "instant", "left_h"),
    [
        (NIGHTS, "2026-11-18 12:00", None),  # Wednesday noon
        (NIGHTS, "2026-11-18 20:00", 11),
        (NIGHTS, "2026-11-19 06:00", 1),
        (NIGHTS, "2026-11-19 07:00", None),
        (NIGHTS, "2026-11-20 20:00", 52),  # Friday night goes over into the weekend
        (NIGHTS, "2026-11-22 23:00", 1),  # Sunday; Monday morning is nobody's night
        ("fri 22:00-06:00", "2026-11-21 05:00", 1),
        ("sun 22:00-06:00", "2026-11-23 05:00", 1),
        ("09:00-12:00, 13:00-17:00", "2026-11-18 12:30", None),
        ("09:00-12:00, 13:00-17:00", "2026-11-18 13:30", 3.5),
        ("mon, wed 9:00-10:00", "2026-11-18 09:15", 0.75),
        ("fri-mon", "2026-11-22 00:00", 48),
        ("SAT-SUN", "2026-11-21 00:00", 48),
        ("mon 12:00-24:00; tue 00:00-01:00", "2026-11-16 23:00", 2),
    ],
)
def test_remaining_open_time_is_computed(text: str, instant: str, left_h: float | None) -> None:
    left = parse(text).seconds_left(_utc(instant), "UTC")

    assert left == (None if left_h is None else left_h * 3600)


@pytest.mark.parametrize("text", ["", "  ", "mon-sun", "00:00-12:00; 12:00-24:00", "sat-fri"])
def test_a_host_without_closing_times_is_always_open(text: str) -> None:
    hours = parse(text)
    now = _utc("2026-11-18 12:00")

    assert hours.seconds_left(now, "Europe/Vienna") == float("inf")
    assert hours.next_open(now, "Europe/Vienna") == now


@pytest.mark.parametrize(
    ("instant", "opens"),
    [
        ("2026-11-18 12:00", "2026-11-18 19:00"),  # Vienna is an hour ahead of UTC in winter
        ("2026-07-15 12:00", "2026-07-15 18:00"),
        ("2026-11-18 20:00", "2026-11-18 20:00"),
    ],
)
def test_the_next_opening_is_computed(instant: str, opens: str) -> None:
    assert parse(NIGHTS).next_open(_utc(instant), "Europe/Vienna") == _utc(opens)


def test_a_window_skipped_by_the_clock_change_opens_a_week_later() -> None:
    """On 2026-03-29 there is no time from 02:00 to 03:00 in Vienna."""
    hours = parse("sun 02:10-02:50")
    assert hours.next_open(_utc("2026-03-23 12:00"), "Europe/Vienna") == _utc("2026-04-05 00:10")


@pytest.mark.parametrize(
    ("instant", "hours_long"),
    [("2026-03-28 19:00", 10), ("2026-10-24 18:00", 12), ("2026-11-14 19:00", 11)],
)
def test_a_night_with_a_clock_change_has_its_real_length(instant: str, hours_long: int) -> None:
    left = parse("20:00-07:00").seconds_left(_utc(instant), "Europe/Vienna")

    assert left == hours_long * 3600


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("mon-fry 20:00-07:00", "mon-fry 20:00-07:00", "expected days such as mon, mon-fri"),
        ("sat; monday 9:00-10:00", "monday 9:00-10:00", "got 'monday'"),
        ("mon 20-07", "mon 20-07", "expected times such as 20:00-07:00, got '20-07'"),
        ("mon 20:00", "mon 20:00", "expected times such as"),
        ("mon 25:00-26:00", "mon 25:00-26:00", "expected times such as"),
        ("mon 24:00-06:00", "mon 24:00-06:00", "expected times such as"),
        ("mon 20:00-20:00", "mon 20:00-20:00", "expected two different times"),
        ("mon 10:00-11:00,", "mon 10:00-11:00,", "expected times such as"),
        ("mon,", "mon,", "expected days such as"),
    ],
)
def test_an_invalid_part_of_opening_hours_is_named(text: str, part: str, expected: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse(text)
    assert caught.value.field == "open_hours"
    assert f"in '{part}'" in str(caught.value)
    assert expected in str(caught.value)


@pytest.mark.parametrize("name", ["", "Nowhere/Land", "../etc/passwd", "Europe", "/etc/localtime"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="expected a time zone") as caught:
        parse_zone(name)
    assert caught.value.field == "timezone"


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


times = st.integers(0, 24 * 60 - 1)
#: Minutes over some years, near clock changes and far from them.
instants = st.one_of(
    st.datetimes(datetime(2011, 12, 25), datetime(2012, 1, 3)),
    st.datetimes(datetime(2026, 3, 28), datetime(2026, 4, 6)),
    st.datetimes(datetime(2026, 10, 3), datetime(2026, 11, 2)),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
).map(lambda naive: naive.replace(tzinfo=UTC))


@st.composite
def some_hours(draw: st.DrawFn) -> OpenHours:
    def part() -> str:
        days = draw(st.lists(st.sampled_from(DAYS), min_size=1, max_size=3))
        start, end = draw(times), draw(times)
        return ",".join(days) + (f" {_clock(start)}-{_clock(end)}" if start != end else "")

    return parse("; ".join(part() for _ in range(draw(st.integers(1, 3)))))


@given(hours=some_hours(), now=instants, zone=st.sampled_from(ZONES))
def test_a_host_closes_exactly_at_its_closing_time(
    hours: OpenHours, now: datetime, zone: str
) -> None:
    left = hours.seconds_left(now, zone)
    if left is None or left == float("inf"):
        return
    assert left > 0
    assert hours.seconds_left(now + timedelta(seconds=left), zone) is None
    assert hours.seconds_left(now + timedelta(seconds=left / 2), zone) is not None
    last = now + timedelta(seconds=left) - timedelta(microseconds=1)
    assert hours.seconds_left(last, zone) is not None


@given(hours=some_hours(), now=instants, zone=st.sampled_from(ZONES))
def test_a_host_opens_exactly_at_its_opening_time(
    hours: OpenHours, now: datetime, zone: str
) -> None:
    opens = hours.next_open(now, zone)
    assert opens >= now
    assert hours.seconds_left(opens, zone) is not None
    if opens > now:
        assert hours.seconds_left(now, zone) is None
        assert hours.seconds_left(opens - timedelta(microseconds=1), zone) is None


@given(start=times, end=times, now=instants, zone=st.sampled_from(ZONES))
def test_each_instant_is_either_open_or_closed(
    start: int, end: int, now: datetime, zone: str
) -> None:
    """What one host has off, the other has on: no instant is both or neither, in any zone."""
    if start == end:
        return
    mine, theirs = (parse(f"{_clock(a)}-{_clock(b)}") for a, b in ((start, end), (end, start)))

    open_now = [each.seconds_left(now, zone) is not None for each in (mine, theirs)]
    assert sorted(open_now) == [False, True]


@given(hours=some_hours(), now=instants)
def test_opening_hours_follow_local_time(hours: OpenHours, now: datetime) -> None:
    minute = now.hour * 60 + now.minute

    def covers(day: int, at: int) -> bool:
        return any(each.day == day and each.start <= at < each.end for each in hours.windows)

    expected = covers(now.weekday(), minute) or covers((now.weekday() - 1) % 7, minute + 24 * 60)
    assert (hours.seconds_left(now, "UTC") is not None) == expected
