"""What a build does: start a run, wait for it, compare, and end with the status that fits."""

import json
import time

import pytest

from orchestrator.runs.cancelling import cancel_run
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.wait_limits import get_wait_limit_s
from tests.support.factories import DEFINITION, finish_run, make_definition
from tests.support.trials import BUSY, ERRORS, SLOW, invalidate, leave_file

pytestmark = pytest.mark.django_db(transaction=True)


def build_run_args(world, **changes):
    words = {"benchmark": "hello", "hosts": "here", "baseline": world.shas[0],
             "contender": world.shas[1], **changes}  # fmt: skip
    return ["run", *(part for name, text in words.items() if text for part in (f"--{name}", text))]


def wait_for_run(process):
    """The run that the command has asked for."""
    until = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < until:
        if (run := Run.objects.first()) is not None:
            return run
        time.sleep(0.05)
    pytest.fail(f"it asked for no run: {process.communicate()}")


def test_run_waits_and_prints_only_the_id(start, world):
    waiting = start(*build_run_args(world), "--wait")
    run = wait_for_run(waiting)
    finish_run(run, (1000, 1000))
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (0, f"{run.pk}\n"), err
    assert "of 10 trials" in err
    assert "pitwall: finished: 10 of 10 trials" in err
    assert "\r" not in err


def test_a_cancelled_run_is_reported(start, world):
    waiting = start(*build_run_args(world), "--wait")
    cancel_run(member=world.personas.alice, run_id=wait_for_run(waiting).pk)
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 3
    assert "the run was cancelled" in err


def test_waiting_ends_at_the_timeout(pitwall, world):
    args = build_run_args(world, **{"wait-limit": "3d"})
    done = pitwall(*args, "--wait", "--timeout", "0.2s")
    assert done.status == 5
    assert "the run is queued after" in done.err
    run = Run.objects.get()
    assert (run.state, get_wait_limit_s(run)) == ("queued", 3 * 86_400)


@pytest.mark.parametrize(
    ("rates", "verdict", "status"),
    [((1000, 800), "regressed", 1), ((1000, 1000), "equivalent", 0), ((1000, 1300), "improved", 0)],
)
def test_only_a_regression_fails_the_build(pitwall, world, rates, verdict, status):
    run = world.measure_run(*rates)
    done = pitwall("compare", f"http://any/runs/{run.pk}/")
    assert done.status == status
    row = next(line for line in done.out.splitlines() if "Requests per second" in line)
    assert row.endswith(f"  {verdict}")
    assert ("FAILED: connections 4 on here: Requests per second" in done.err) == bool(status)
    never = pitwall("compare", str(run.pk), "--fail-on", "never")
    assert (never.status, "FAILED" in never.err) == (0, False)
    assert pitwall("compare", str(run.pk), "--fail-on", "improved").status == (
        verdict == "improved"
    )


@pytest.mark.parametrize(
    ("reason", "fail_on", "status", "words"),
    [
        (
            ERRORS,
            "regressed",
            1,
            "FAILED: connections 4 on here: broken, the contender failed in 5",
        ),
        (ERRORS, "broken", 1, "FAILED: connections 4 on here: broken"),
        (SLOW, "regressed", 1, "FAILED: connections 4 on here: saturated, the contender failed"),
        (SLOW, "broken", 0, ""),
        (ERRORS, "never", 0, ""),
        (BUSY, "regressed", 4, "no result: connections 4 on here: 5 of 5 blocks were excluded"),
    ],
)
def test_a_contender_that_fails_is_worse_than_a_regression(
    pitwall, world, reason, fail_on, status, words
):
    run = invalidate(world.measure_run(1000, 1000), reason, variant__position=1)
    done = pitwall("compare", str(run.pk), "--fail-on", fail_on, "--min-change", "2%")
    assert done.status == status, done
    assert words in done.err


def test_a_change_counts_only_if_its_whole_interval_exceeds_the_minimum(pitwall, world):
    """The rate falls by 5 %, give or take half a per cent."""
    run = world.measure_run(1000, 950)
    assert pitwall("compare", str(run.pk), "--min-change", "3%").status == 1
    spared = pitwall("compare", str(run.pk), "--min-change", "0.07", "--json")
    assert spared.status == 0
    build = json.loads(spared.out)["build"]
    assert (build["because"], build["min_change"]) == ([], 0.07)
    assert any("Requests per second regressed, −5" in each for each in build["not_counted"])
    assert "not counted, may be less than 7 %" in spared.err


def test_nothing_to_compare_does_not_pass(pitwall, world):
    run = world.queue_run()
    done = pitwall("compare", str(run.pk))
    assert done.status == 2
    assert "did not measure" in done.err
    run.jobs.get().trials.update(state="failed", reasons=["server_died"])
    void = pitwall("compare", str(run.pk))
    assert void.status == 4, void


def test_a_job_summary_is_written(pitwall, world, tmp_path):
    run, summary = world.measure_run(1000, 800), tmp_path / "summary.md"
    summary.write_text("before\n")
    done = pitwall("compare", str(run.pk), "--format", "csv", "--append", str(summary))
    assert done.out.startswith("case,case_key,")
    text = summary.read_text()
    assert text.startswith("before\n**▼ regressed**")
    assert "- `FAILED: connections 4 on here: Requests per second regressed" in text


def test_a_retried_build_does_not_measure_again(pitwall, world):
    first = pitwall(*build_run_args(world), "--once")
    assert pitwall(*build_run_args(world), "--once").out == first.out
    assert Run.objects.count() == 1
    # A run that failed answers nothing: it is asked for once more, and only once.
    cancel_run(member=world.personas.alice, run_id=Run.objects.get().pk)
    second = pitwall(*build_run_args(world), "--once")
    assert second.out != first.out
    assert pitwall(*build_run_args(world), "--once").out == second.out
    assert Run.objects.count() == 2
    assert pitwall(*build_run_args(world)).out not in (first.out, second.out)


def test_the_baseline_is_the_fork_point_of_the_branch(pitwall, world, monkeypatch):
    monkeypatch.chdir(world.repository)
    words = build_run_args(world, baseline="", contender="")
    pitwall(*words, "--merge-base", "main")
    run = Run.objects.get()
    # The head is the third commit, of main itself: its first parent is the baseline.
    assert [each.commit.sha for each in run.variants.all()] == [world.shas[1], world.shas[2]]
    done = pitwall(*words, "--merge-base", "nosuch")
    assert (done.status, "there is no branch nosuch" in done.err) == (2, True)


def test_one_commit_is_measured_without_a_baseline(pitwall, world):
    words = build_run_args(world, baseline="")
    done = pitwall(*words, "--alone")
    assert (done.status, "against" in done.err) == (0, False)
    assert [each.commit.sha for each in Run.objects.get().variants.all()] == [world.shas[1]]
    done = pitwall(*words, "--contender", world.shas[2], "--alone")
    assert (done.status, "--alone measures one commit; there are 2" in done.err) == (2, True)


@pytest.mark.parametrize(("rule", "found"), [("merge-base:main", 1), ("newest-measured:main", 0)])
def test_a_baseline_rule_is_resolved_by_the_server(pitwall, world, rule, found):
    """Only the first of three commits was measured; where the command runs there is no checkout."""
    finish_run(world.queue_run(0), (1000,))
    done = pitwall(*build_run_args(world, baseline=rule, contender=""), "--ref", "main")
    assert done.status == 0, done.err
    run = Run.objects.get(state="queued")
    assert [each.commit.sha for each in run.variants.all()] == [world.shas[found], world.shas[2]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hosts": "here,nowhere"}, "no host named nowhere"),
        ({"contender": "nosuchbranch"}, "nosuchbranch"),
        ({"benchmark": "nosuch"}, "no benchmark nosuch"),
        ({"baseline": "newest-measured:main"}, "none was measured"),
    ],
)
def test_a_refused_request_is_reported(pitwall, world, changes, message):
    done = pitwall(*build_run_args(world, **changes))
    assert done.status == 2
    assert message in done.err
    assert Run.objects.count() == 0


def test_a_viewer_cannot_start_runs_and_a_stranger_finds_none(pitwall, world, bob, mallory):
    run = world.measure_run(1000, 1000)
    assert pitwall(*build_run_args(world), token=bob.secret).status == 2
    assert pitwall("compare", str(run.pk), token=bob.secret).status == 0
    for words in (["compare", str(run.pk)], ["wait", str(run.pk)], build_run_args(world)):
        assert pitwall(*words, token=mallory.secret).status == 2
    assert "hello" not in pitwall("hosts", token=mallory.secret).out
    assert Run.objects.count() == 1


#: What a hostile server may write: colours, a title, a bell, an overwritten line, a reversed text.
NOISE = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x07old\rTraceback: no \x9b31mconfig\u202e\x01"
SHOWN = "Traceback: no config"


def fail_trials(run, message, **which):
    trials = Trial.objects.filter(job__run=run, **which)
    trials.update(state="failed", validity="", reasons=["server_not_ready"], message=message)
    return trials


def test_the_output_of_the_server_is_printed_for_each_failed_case(pitwall, world):
    run = world.measure_run(1000, 1000)
    output = "\n".join([*(f"line {number}" for number in range(100)), NOISE])
    fail_trials(run, f"the server ended before it answered\n{output}", variant__position=1)
    done = pitwall("wait", str(run.pk))
    contender = run.variants.get(position=1).commit.short_sha
    head = f"pitwall: failed: connections 4 on here, commit {contender}: the server ended before it"
    lines = done.err.splitlines()
    [start] = [number for number, line in enumerate(lines) if line.startswith(head)]
    tail = [line.removeprefix("pitwall:   | ") for line in lines[start + 1 :]]
    assert tail == [*(f"line {number}" for number in range(81, 100)), SHOWN]
    # The other cases and commits have a result, which `compare` judges.
    assert (done.status, done.out) == (0, "")


def test_no_control_character_of_a_server_reaches_the_terminal(pitwall, world):
    run = world.measure_run(1000, 1000)
    fail_trials(run, f"the server ended\n{NOISE}")
    Run.objects.filter(pk=run.pk).update(state="failed", message=f"the server ended\n{NOISE}")
    done = pitwall("wait", str(run.pk))
    assert done.status == 3
    assert done.err.count(SHOWN) == 3
    assert not {each for each in done.err if each != "\n" and not each.isprintable()}


def test_a_run_without_usable_data_has_its_own_status(pitwall, world):
    run = invalidate(world.measure_run(1000, 1000), ERRORS)
    for trial in Trial.objects.filter(job__run=run, variant__position=1):
        leave_file(trial, "server.log", f"could not open the pool\n{NOISE}".encode())
    done = pitwall("wait", str(run.pk))
    assert done.status == 4
    assert f"\npitwall:   | could not open the pool\npitwall:   | {SHOWN}\n" in done.err
    assert "the run has no usable data: no usable data: all 10 trials are invalid" in done.err
    failed = f"failed: connections 4 on here, commit {world.shas[0][:10]}: http_errors: 40 answers"
    assert failed in done.err
    assert pitwall(*build_run_args(world), "--once").out != f"{run.pk}\n"


def test_the_time_in_the_queue_is_part_of_the_time_left(pitwall, world):
    world.queue_run()
    done = pitwall(*build_run_args(world), "--wait", "--timeout", "0.2s")
    assert "about 36 s left (18 s of it in the queue)" in done.err


def test_a_run_builds_its_commits_several_times(pitwall, world):
    source = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")
    make_definition(world.alice, world.project, source=source)
    done = pitwall(*build_run_args(world, rounds="10", builds="5"))
    assert done.status == 0, done.err
    assert Run.objects.get().builds == 5
    refused = pitwall(*build_run_args(world, rounds="5", builds="5"))
    assert refused.status != 0
    assert "builds" in refused.err
