"""Reservations of a host by people who work on it."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from agents.hostagent.errors import BadArgument
from agents.hostagent.reservation import (
    FILE,
    LONGEST_S,
    end_reservation,
    parse_duration_s,
    read_reservation,
    write_reservation,
)
from tests.agents.support import AgentHost


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1d", 86_400), ("7d", 604_800)],
)
def test_a_duration_is_parsed(text: str, seconds: int) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "0m", "2", "2 h", "-1h", "8d", "h", "1m2h", "2h\n", "99999d"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(BadArgument, match="such as 30m, 2h or 1d, at most 7d"):
        parse_duration_s(text)


def test_a_reservation_lasts_until_its_time_or_its_end(tmp_path: Path) -> None:
    write_reservation(tmp_path, "2h", "debugging\n\x1b[31m")
    found = read_reservation(tmp_path)
    assert found is not None
    assert 7100 < found.left_s <= 7200
    assert found.reason == "debugging[31m", "no control characters"
    content = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**content, "until": time.time() - 1}))
    assert read_reservation(tmp_path) is None
    (tmp_path / FILE).write_text(json.dumps({**content, "until": time.time() + 1e12}))
    longest = read_reservation(tmp_path)
    assert longest is not None
    assert longest.left_s == LONGEST_S
    end_reservation(tmp_path)
    end_reservation(tmp_path)
    assert read_reservation(tmp_path) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"until": "x", "by": ""}', "[" * 9999])
def test_a_damaged_file_is_no_reservation(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert read_reservation(tmp_path) is None


def test_people_reserve_the_host_with_a_command_in_the_work_directory(host: AgentHost) -> None:
    assert host.verb("facts")["reservation"] is None
    env = {"PATH": os.defpath, "LOGNAME": "ada"}

    def reserve(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [str(host.root / "reserve"), *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, env=env)

    assert reserve().stdout == "This host is not reserved.\n"
    made = reserve("2h", "debugging", "a leak")
    assert made.stdout.startswith("Reserved by ada for debugging a leak until 2"), made.stderr
    reported = host.verb("prepare")["reservation"]
    assert 7000 < reported.pop("left_s") <= 7200
    assert reported == {"by": "ada", "reason": "debugging a leak"}
    wrong = reserve("soon")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "expected a time such as 30m, 2h or 1d" in wrong.stderr
    assert reserve("off").returncode == 0
    assert host.verb("facts")["reservation"] is None
