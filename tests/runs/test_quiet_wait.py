"""What a user reads while a trial waits for a quiet host."""

from typing import Any

from orchestrator.runs.quiet_wait import describe_busy_host


def test_message_names_the_host_the_share_and_the_processes(settings: Any) -> None:
    settings.QUIET_WAIT_S = 60
    foreign = [{"name": "chromium", "cpu_s": 0.2}, {"name": "py\0thon", "cpu_s": 0.1}]
    text = describe_busy_host("lab-1", 0.62, foreign)
    assert text.startswith(
        "lab-1 is busy: other processes use 62 % of its CPUs, mostly chromium, python."
    )
    assert "at most 60 s" in text


def test_message_without_known_values_names_the_host() -> None:
    text = describe_busy_host("lab-1", None, ())
    assert text.startswith("lab-1 is busy: other processes use much of its CPUs.")
