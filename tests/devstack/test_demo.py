"""What the demo makes and prints, without the stack around it."""

import io
import subprocess

import pytest

from cli.pitwall.bar import Progress
from devstack import demo_repository
from devstack.demo import DemoError, count_excluded_blocks, judge
from devstack.demo_progress import show
from devstack.demo_repository import RepositoryError
from devstack.demo_tables import render_comparison

SERVER = "WORK = 50\nprint(WORK)\n"


@pytest.fixture(autouse=True)
def source(monkeypatch, tmp_path):
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    monkeypatch.setattr(demo_repository, "SOURCE", path)
    # The developer's own settings must have no effect.
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    return path


def git(folder, *args):
    return demo_repository.run_git(folder, *args).strip()


def test_the_demo_repository_has_reproducible_hashes(tmp_path):
    one = demo_repository.create_demo_repository(tmp_path / "one")
    two = demo_repository.create_demo_repository(tmp_path / "two")
    assert one == two
    assert git(tmp_path / "one", "rev-parse", "HEAD") == one.slower
    assert demo_repository.read_server_source(tmp_path / "one", one.harmless) == SERVER
    changed = demo_repository.read_server_source(tmp_path / "one", one.slower)
    assert changed == SERVER.replace("WORK = 50", demo_repository.MORE_WORK.strip())


def test_added_commits_of_the_demo_repository_are_kept(tmp_path):
    folder = tmp_path / "repository"
    first = demo_repository.create_demo_repository(folder)
    git(folder, "commit", "--allow-empty", "-m", "My own")
    assert demo_repository.create_demo_repository(folder) == first
    assert git(folder, "log", "-1", "--format=%s") == "My own"


def test_another_server_replaces_the_demo_repository_and_keeps_the_old_one(tmp_path, source):
    folder = tmp_path / "repository"
    first = demo_repository.create_demo_repository(folder)
    source.write_text(SERVER + "# new\n")
    assert demo_repository.create_demo_repository(folder).first != first.first
    assert (tmp_path / "repository.old" / ".git").is_dir()


def test_another_amount_of_work_replaces_the_demo_repository(tmp_path, monkeypatch):
    folder = tmp_path / "repository"
    first = demo_repository.create_demo_repository(folder)
    monkeypatch.setattr(demo_repository, "MORE_WORK", "WORK = 7\n")
    again = demo_repository.create_demo_repository(folder)
    assert again.first == first.first
    assert again.slower != first.slower


def test_a_server_without_the_constant_is_refused(tmp_path, source):
    source.write_text("print('no work')\n")
    with pytest.raises(RepositoryError, match="does not have one line `WORK = 50`"):
        demo_repository.create_demo_repository(tmp_path / "repository")


def test_the_demo_repository_contains_the_server_of_the_catalogue(monkeypatch, tmp_path):
    catalogue = demo_repository.CHECKOUT / "agents" / "suites" / "hello" / "server.py"
    monkeypatch.setattr(demo_repository, "SOURCE", catalogue)
    commits = demo_repository.create_demo_repository(tmp_path / "repository")
    slower = demo_repository.read_server_source(tmp_path / "repository", commits.slower)
    compile(slower, "server.py", "exec")
    clone = tmp_path / "clone"
    argv = ["git", "clone", "-q", str(tmp_path / "repository"), str(clone)]
    subprocess.run(argv, check=True, env={"PATH": "/usr/bin:/bin"})
    assert (clone / "server.py").read_text() == slower


RUN = {
    "state": "running",
    "phase": "measuring",
    "trials_total": 21,
    "trials_done": 7,
    "trials_skipped": 0,
    "seconds_until_start": 0,
    "seconds_left": 50,
    "ended_at": None,
    "jobs": [{"state": "measuring", "phase": "measuring", "waiting": ""}],
}


def test_each_change_is_printed_on_a_line_without_a_terminal():
    out = io.StringIO()
    progress = Progress(out)
    for done in (7, 7, 8):
        show(progress, {**RUN, "trials_done": done})
    progress.end()
    assert out.getvalue().splitlines() == [
        f"pitwall: running: {done} of 21 trials, about 50 s left, measuring" for done in (7, 8)
    ]


COMPARISON = {
    "baseline": {"commit": "a" * 40, "subject": "Serve a greeting"},
    "contender": {"commit": "b" * 40, "subject": "Sign each greeting"},
    "verdict": "regressed",
    "summary": "Slower by 10.8 %.",
    "notes": [],
    "web_url": "http://127.0.0.1:8000/compare/?baseline=a",
    "cases": [
        {
            "case": {"key": "k", "label": "16 connections"},
            "verdict": "regressed",
            "excluded_blocks": 2,
            "validity_issues": [
                {"code": "foreign_process", "title": "CPU of other processes", "trials": 3}
            ],
            "metrics": [
                {
                    "title": "Requests per second", "unit": "1/s", "primary": True,
                    "baseline": 1234.56, "contender": 1100.1, "change": -0.1089,
                    "interval": [-0.13, -0.09], "verdict": "regressed",
                },
                {
                    "title": "p99", "unit": "s", "primary": False,
                    "baseline": 0.01234, "contender": None, "change": None,
                    "interval": None, "verdict": "inconclusive",
                },
            ],
        }
    ],
}  # fmt: skip


def test_a_comparison_is_printed_with_intervals_and_address():
    text = render_comparison(COMPARISON)
    table = [line for line in text.splitlines() if line.startswith("    ")]
    assert table[2].endswith(
        "1\u202f235 1/s  1\u202f100 1/s  −10.9 %  −13.0 % to −9.0 %  regressed"
    )
    assert "12.3 ms" in table[3]
    assert table[3].endswith("inconclusive")
    assert COMPARISON["web_url"] in text
    assert "REGRESSED: Slower by 10.8 %." in text
    assert "    3 trials: CPU of other processes" in text.splitlines()


def test_the_demo_passes_only_with_the_expected_verdicts():
    judge("equivalent", "regressed", 0)
    with pytest.raises(DemoError, match="a regression for the commit that changes nothing"):
        judge("regressed", "regressed", 0)
    with pytest.raises(DemoError, match=r"is inconclusive, not regressed\. If its intervals"):
        judge("equivalent", "inconclusive", 0)


def test_the_demo_names_excluded_blocks_as_the_reason_for_a_missing_verdict():
    excluded = count_excluded_blocks(COMPARISON)
    with pytest.raises(DemoError, match=r"2 blocks were excluded.* stop other programs"):
        judge("equivalent", "inconclusive", excluded)
