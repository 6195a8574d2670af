"""How times, facts and intervals are shown."""

from datetime import timedelta

import pytest
from django.utils import timezone

from orchestrator.web.markdown import as_html
from orchestrator.web.sentences import build_sentence, join_sentences
from orchestrator.web.templatetags import pitwall


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "just now"),
        (42.5, "42 s ago"),
        (125, "2 min ago"),
        (7300, "2 h ago"),
        (3 * 86400 + 60, "3 d ago"),
        (31 * 86400, "1 month ago"),
        (70 * 86400, "2 months ago"),
        (-3700, "in 1 h"),
    ],
)
def test_times_are_relative_to_now(seconds: float, shown: str) -> None:
    instant = timezone.now() - timedelta(seconds=seconds)

    text = pitwall.ago(instant)

    assert f">{shown}</time>" in text
    assert f'title="{instant:%Y-%m-%d %H:%M:%S} UTC"' in text


def test_unknown_values_are_a_dash() -> None:
    assert pitwall.ago(None) == "–"
    assert pitwall.units.format_interval(None) == "–"
    assert pitwall.quantities(None, "s") == "–"


def test_a_percent_sign_stays_with_its_number() -> None:
    assert (
        pitwall.unbroken("p50 +3.2 % (+1 % to +5 %)") == "p50 +3.2\u00a0% (+1\u00a0% to +5\u00a0%)"
    )


def test_facts_are_flattened() -> None:
    facts = {"cpu": {"model": "M2", "flags": ["a", "b"]}, "clock_mhz": None, "tools": {}}

    assert pitwall.facts(facts) == [
        ("cpu › model", "M2"),
        ("cpu › flags", "a, b"),
        ("clock mhz", "unknown"),
        ("tools", "{}"),
    ]


def test_commands_are_quoted_for_a_shell() -> None:
    assert pitwall.command(["oha", "-H", "a: b", "http://h/?x=1&y"]) == (
        "oha -H 'a: b' 'http://h/?x=1&y'"
    )


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("there is no host nowhere", "There is no host nowhere."),
        ("git's answer is empty; try again", "Git's answer is empty; try again."),
        ("Choose at least one host.", "Choose at least one host."),
        ("rack-1 is retired: activate it first", "rack-1 is retired: activate it first."),
        ("oha is missing; install it", "oha is missing; install it."),
        ("load.rate: expected a number", "load.rate: expected a number."),
        ("unknown field rat; did you mean rate?", "Unknown field rat; did you mean rate?"),
        ("the build failed:\nerror: no such file", "The build failed:\nerror: no such file"),
        ("", ""),
    ],
)
def test_messages_of_errors_are_shown_as_sentences(message: str, shown: str) -> None:
    assert build_sentence(message) == shown


def test_several_messages_are_several_sentences() -> None:
    assert join_sentences(["no host", "no case"]) == "No host. No case."


def test_intervals_have_signs() -> None:
    assert pitwall.units.format_interval((-0.031, 0.012)) == "−3.1 % to +1.2 %"


def test_markdown_is_shown_below_the_page_s_heading() -> None:
    text = "# Title\n\nOne *word*.\n\n## Part\n\n| a | b |\n|:--|--:|\n| 1 | 2 |\n"
    shown = as_html(text)
    assert "Title" not in shown
    assert "<p>One <em>word</em>.</p>" in shown
    assert "<h3>Part</h3>" in shown
    assert '<div class="scroll"><table>' in shown
    assert shown.count("</table>\n</div>") == 1
    assert '<td class="number">2</td>' in shown
    assert "style" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "[x](javascript:alert(1))",
        "![x](https://example.org/x.png)",
        "[x](data:text/html,<script>)",
        "<javascript:alert(1)>",
    ],
)
def test_markdown_carries_no_script_into_a_page(text: str) -> None:
    shown = as_html(text)
    assert "<script" not in shown
    assert "<img" not in shown
    assert 'href="javascript' not in shown
    assert 'href="data' not in shown
