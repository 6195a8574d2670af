"""How times, facts and intervals are shown."""

from datetime import timedelta

import pytest
from django.utils import timezone

from orchestrator.web.templatetags import pitwall


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "just now"),
        (42.5, "42 s ago"),
        (125, "2 min ago"),
        (7300, "2 h ago"),
        (3 * 86400 + 60, "3 d ago"),
        (-3700, "in 1 h"),
    ],
)
def test_it_shows_times_as_seen_from_now(seconds: float, shown: str) -> None:
    instant = timezone.now() - timedelta(seconds=seconds)

    text = pitwall.ago(instant)

    assert f">{shown}</time>" in text
    assert f'title="{instant:%Y-%m-%d %H:%M:%S} UTC"' in text


def test_it_shows_what_is_unknown_as_a_dash() -> None:
    assert pitwall.ago(None) == "–"
    assert pitwall.interval(None) == "–"
    assert pitwall.quantities(None, "s") == "–"


def test_it_flattens_facts() -> None:
    facts = {"cpu": {"model": "M2", "flags": ["a", "b"]}, "clock_mhz": None, "tools": {}}

    assert pitwall.facts(facts) == [
        ("cpu › model", "M2"),
        ("cpu › flags", "a, b"),
        ("clock mhz", "unknown"),
        ("tools", "{}"),
    ]


def test_it_quotes_a_command_as_a_shell_wants_it() -> None:
    assert pitwall.command(["oha", "-H", "a: b", "http://h/?x=1&y"]) == (
        "oha -H 'a: b' 'http://h/?x=1&y'"
    )


def test_it_shows_an_interval_with_its_signs() -> None:
    assert pitwall.interval((-0.031, 0.012)) == "−3.1 % to +1.2 %"
