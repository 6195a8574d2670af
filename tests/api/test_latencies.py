"""Any percentile of a trial or a case, and the distributions themselves."""

from urllib.parse import parse_qs, urlsplit

import pytest

from orchestrator.results.models import Histogram as Stored
from orchestrator.runs.models import Trial
from orchestrator.stats.histogram import Histogram
from tests.support.trials import ERRORS, STEAL, doubt, first_trial, leave_load


@pytest.fixture
def run(world):
    return world.measure_run(1000, 800)


@pytest.fixture
def trial(run):
    return first_trial(run)


@pytest.fixture
def query(world, run):
    return {"case": first_trial(run).case.key, "commit": world.shas[0], "percentiles": "50,99.5"}


def stored(trials):
    rows = Stored.objects.filter(trial__in=trials, kind="ok")
    return Histogram.merged(Histogram.decode(bytes(each.encoded)) for each in rows)


def load_trials(run, position):
    return Trial.objects.filter(job__run=run, variant__position=position).order_by("round")


def test_any_percentile_of_a_trial_is_computed(alice, trial):
    shown = alice.get(f"trials/{trial.pk}/latency", percentiles="50,12.5,99.99").json()
    whole = stored([trial])
    assert [each["percentile"] for each in shown["percentiles"]] == [50, 12.5, 99.99]
    assert [each["seconds"] for each in shown["percentiles"]] == [
        whole.percentile(50) / 1e6, whole.percentile(12.5) / 1e6, None,
    ]  # fmt: skip
    assert shown["requests"] == whole.total_count
    assert shown["label"].startswith("closed loop")
    assert (shown["validity"], shown["reasons"], shown["kind"]) == ("valid", [], "ok")


def test_each_percentile_reports_the_requests_that_it_needs(alice, trial):
    shown = alice.get(f"trials/{trial.pk}/latency", percentiles="50,99,99.9,99.99").json()
    needed = [each["needed_requests"] for each in shown["percentiles"]]
    assert needed == [20, 1000, 10_000, 100_000]


def test_a_trial_with_validity_issues_reports_them(alice, trial):
    doubt(trial, "invalid", ERRORS)
    shown = alice.get(f"trials/{trial.pk}/latency", percentiles="50").json()
    assert (shown["validity"], shown["reasons"]) == ("invalid", [ERRORS])


def test_a_kind_without_responses_has_no_latency(alice, trial):
    shown = alice.get(f"trials/{trial.pk}/latency", percentiles="50", kind="other").json()
    assert (shown["requests"], shown["percentiles"][0]["seconds"]) == (0, None)
    assert alice.get(f"trials/{trial.pk}/histogram", kind="other").status_code == 404


@pytest.mark.parametrize("text", ["100", "0", "x", "50,", "101", ",".join(map(str, range(1, 60)))])
def test_an_invalid_percentile_is_refused(alice, trial, text):
    answer = alice.get(f"trials/{trial.pk}/latency", percentiles=text)
    assert (answer.status_code, answer.json()["field"]) == (422, "percentiles")


def test_one_of_several_loads_is_selected(alice, trial):
    leave_load(trial, 0, latencies_us=[1000], readings={})
    leave_load(trial, 1, readings={})
    path = f"trials/{trial.pk}/latency"
    first = alice.get(path, percentiles="50", load=0).json()
    second = alice.get(path, percentiles="50", load=1).json()
    assert (first["requests"], first["percentiles"][0]["seconds"]) == (100, 0.001)
    assert (second["requests"], second["percentiles"][0]["seconds"]) == (0, None)
    assert alice.get(path, percentiles="50", load=2).status_code == 404
    assert alice.get(path, percentiles="50", load=0, kind="other").status_code == 422


def test_the_distribution_of_a_trial_is_downloaded(alice, mallory, trial):
    url = alice.get(f"trials/{trial.pk}/latency", percentiles="50").json()["histogram_url"]
    path = url.removeprefix("/api/v1/")
    answer = alice.get(path)
    assert Histogram.decode(answer.content) == stored([trial])
    assert answer["Content-Type"] == "application/octet-stream"
    assert mallory.get(path).status_code == 404
    assert mallory.get(f"trials/{trial.pk}/latency", percentiles="50").status_code == 404


def test_the_trials_of_a_case_are_merged(alice, run, query):
    shown = alice.get("latency", **query, run=str(run.pk)).json()
    trials = list(load_trials(run, 0))
    whole = stored(trials)
    assert shown["requests"] == whole.total_count == 5 * stored(trials[:1]).total_count
    assert shown["percentiles"][1]["seconds"] == whole.percentile(99.5) / 1e6
    assert sorted(shown["trials"]) == sorted(str(each.pk) for each in trials)
    assert (shown["suspect"], shown["excluded"], shown["host"]) == (0, 0, "here")
    assert shown["label"].startswith("closed loop")


def test_invalid_trials_are_excluded_unless_requested(alice, run, query):
    invalid, suspect, *_ = load_trials(run, 0)
    doubt(invalid, "invalid", ERRORS)
    doubt(suspect, "suspect", STEAL)
    shown = alice.get("latency", **query, benchmark="hello").json()
    assert (len(shown["trials"]), shown["suspect"], shown["excluded"]) == (4, 1, 1)
    assert str(invalid.pk) not in shown["trials"]
    every = alice.get("latency", **query, benchmark="hello", invalid=True).json()
    assert (len(every["trials"]), every["excluded"]) == (5, 0)
    assert parse_qs(urlsplit(every["histogram_url"]).query)["invalid"] == ["true"]


def test_the_merged_distribution_is_downloaded(alice, run, query):
    url = alice.get("latency", **query, run=str(run.pk)).json()["histogram_url"]
    answer = alice.get(url.removeprefix("/api/v1/"))
    assert Histogram.decode(answer.content) == stored(load_trials(run, 0))


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"case": "nothing"}, 404, None),
        ({"commit": "0" * 10}, 404, None),
        ({"host": "nowhere"}, 404, None),
        ({"percentiles": "100"}, 422, "percentiles"),
        ({"benchmark": ""}, 422, "benchmark"),
    ],
)
def test_unknown_parameters_are_named(alice, query, change, status, field):
    answer = alice.get("latency", **{**query, "benchmark": "hello", **change})
    assert (answer.status_code, answer.json().get("field")) == (status, field)


def test_a_benchmark_or_a_run_is_required(alice, query):
    answer = alice.get("latency", **query)
    assert (answer.status_code, answer.json()["field"]) == (422, "benchmark")


def test_hosts_are_not_merged(world, alice, query, run):
    other = run.jobs.get().host
    other.pk, other.name = None, "there"
    other.id = None
    other._state.adding = True
    type(other).save(other)
    Trial.objects.filter(pk=load_trials(run, 0)[0].pk).update(host=other)
    answer = alice.get("latency", **query, benchmark="hello")
    assert (answer.status_code, answer.json()["field"]) == (422, "host")
    assert "here, there" in answer.json()["detail"]
    shown = alice.get("latency", **query, benchmark="hello", host="there").json()
    assert len(shown["trials"]) == 1


def test_a_stranger_reads_no_case(mallory, bob, query, run):
    assert mallory.get("latency", **query, run=str(run.pk)).status_code == 404
    assert bob.get("latency", **query, run=str(run.pk)).status_code == 200
