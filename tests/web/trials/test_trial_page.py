"""A trial's page: what it rests on, what it cost, and any percentile of it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from cli.pitwall.units import format_value
from orchestrator.results.models import Artifact
from orchestrator.runs.models import Trial
from orchestrator.stats.histogram import Histogram
from tests.support.factories import record_again
from tests.support.html_pages import element, elements, get_text, values
from tests.support.trials import ERRORS, STEAL, doubt, first_trial, leave_json, leave_load
from tests.support.world import World

GOLDEN = Path(__file__).parents[2] / "loadtools" / "golden" / "oha-1.16.0"


@pytest.fixture
def trial(world: World) -> Trial:
    return first_trial(world.run)


def page_text(client: Client, trial: Trial, **query: str) -> str:
    return get_text(client.get(reverse("trial", args=[trial.pk]), query))


def provenance(trial: Trial, **more: Any) -> None:
    Trial.objects.filter(pk=trial.pk).update(provenance={**trial.provenance, **more})


def test_an_invalid_trial_shows_reasons_and_fixes(trial: Trial, alice: Client) -> None:
    doubt(trial, "invalid", ERRORS, STEAL)
    page = alice.get(reverse("trial", args=[trial.pk])).content.decode()
    text = page_text(alice, trial)

    assert "Invalid: it is excluded from charts and comparisons" in text
    assert "Answers of another status : 40 answers with status 500" in text
    assert f"{reverse('validity')}#http_errors" in values(page, "a[href]", "href")
    assert "Results ✕ invalid" in text


def test_requested_and_used_protocol_are_shown(trial: Trial, alice: Client) -> None:
    assert "Protocol used unknown: reported by neither the load tool nor a check" in page_text(
        alice, trial
    )
    provenance(trial, protocol="h2")
    assert "Requested protocol HTTP/1.1 Protocol used HTTP/2 ✕ differs from the requested one" in (
        page_text(alice, trial)
    )
    provenance(trial, protocol="h1")
    assert "not what was asked for" not in page_text(alice, trial)


def test_checks_before_and_after_the_load_are_shown(trial: Trial, alice: Client) -> None:
    right = {
        "name": "load", "when": "before", "problem": None, "protocol": "h1", "status": 200,
        "length": 13, "encoding": "identity",
    }  # fmt: skip
    wrong = {**right, "when": "after", "problem": "status 500 <instead of> 200", "status": 500}
    silent = {**right, "name": "2", "protocol": None, "length": None, "encoding": None}
    provenance(trial, checks=[right, silent, wrong])
    text = page_text(alice, trial)

    assert "request of the load before ✓ correct h1 200 13 identity" in text
    assert "check 2 before ✓ correct unknown 200 unknown unknown" in text
    assert "request of the load after ✕ status 500 <instead of> 200 h1 500 13 identity" in text


def test_prepare_steps_and_their_durations_are_shown(trial: Trial, alice: Client) -> None:
    step = {"step": 1, "run": "seed <rows>", "each": "job", "after": "services"}
    steps = [
        {**step, "seconds": 12.5, "runs": 0},
        {**step, "step": 2, "each": "trial", "after": "server", "seconds": 0.25, "runs": 1},
        {**step, "step": 3, "each": "trial", "after": "build", "seconds": 0.5, "runs": 9},
    ]
    assert "Prepare steps" not in page_text(alice, trial)
    provenance(trial, prepare=steps)
    text = page_text(alice, trial)
    assert "1 seed <rows> job services 12.5 s in an earlier trial" in text
    assert "2 seed <rows> trial server 250 ms in this trial" in text
    assert "3 seed <rows> trial build 500 ms 9 times in this trial" in text
    provenance(trial, prepare=[{**steps[0], "seconds": "soon"}])
    assert "Prepare steps" not in page_text(alice, trial)


def test_sampled_answers_and_their_notes_are_shown(trial: Trial, alice: Client) -> None:
    seen = {
        "check": "load", "when": "during", "count": 3, "problem": None, "protocol": "h1",
        "status": 200, "length": 13, "encoding": "identity", "cached": True,
    }  # fmt: skip
    wrong = {
        **seen,
        "check": "1",
        "count": 1,
        "problem": "body 'a' instead of 'b'",
        "cached": False,
    }
    answers = {"sent": 6, "unanswered": 2, "first_s": 0.5, "later_s": 0.001, "seen": [seen, wrong]}
    provenance(trial, checks=[], answers=answers)
    text = page_text(alice, trial)

    assert "6 requests of the agent during the load, 2 without an answer" in text
    assert "request of the load during ✓ 3 equal answers h1 200 13 identity" in text
    assert "check 1 during ✕ body 'a' instead of 'b' h1 200 13 identity" in text
    assert "The first answer took 500 ms, later ones before the load 1.00 ms." in text
    assert "Headers of 3 of 4 sampled answers during the load say that a cache sent them." in text


def test_each_load_is_shown_with_its_objective(trial: Trial, alice: Client) -> None:
    fast = {"requests.rate": 100.0, "latency.p50": 0.001, "latency.p99": 0.004}
    slow = {"requests.rate": 350.0, "latency.p50": 0.02, "latency.p99": 0.25, "requests.errors": 3}
    leave_load(trial, 0, rate=100.0, passed=True, readings=fast)
    leave_load(
        trial, 1, rate=400.0, passed=False, reason="latency.p99 250 ms", readings=slow,
        validity="suspect", reasons=[STEAL],
    )  # fmt: skip
    leave_load(trial, 2, rate=800.0, passed=False, validity="invalid", reasons=[ERRORS])
    page = alice.get(reverse("trial", args=[trial.pk])).content.decode()
    text = page_text(alice, trial)

    assert "1 100 1/s 4 × 1 100 1/s 1.00 ms 4.00 ms unknown unknown ✓ passed ✓ valid" in text
    assert (
        "2 400 1/s 4 × 1 350 1/s 20.0 ms 250 ms 3 unknown ✕ missed latency.p99 250 ms "
        "! suspect CPU that the hypervisor took" in text
    )
    assert "3 800 1/s 4 × 1 unknown unknown unknown unknown unknown ✕ missed" in text
    assert '"outcome": "passed"' in page
    assert '"outcome": "missed"' in page
    assert "js/loads.js" in page


def test_a_single_load_has_no_table_of_loads(trial: Trial, alice: Client) -> None:
    page = alice.get(reverse("trial", args=[trial.pk])).content.decode()
    assert "Loads <" not in page
    assert "js/loads.js" not in page


def test_the_cost_of_a_response_or_its_reason_is_shown(trial: Trial, alice: Client) -> None:
    record_again({trial.pk: {"memory.server_peak": 2.0**20, "cost.money_per_1m": 0.25}})
    usage = {"reasons": {"services_cpu_s": "the definition has no services"}}
    ambient = {"a": {"energy_j": None, "reasons": {"energy_j": "no permission to read RAPL"}}}
    leave_json(trial, "result.json", {"loads": [{"usage": usage, "interference": ambient}]})
    text = page_text(alice, trial)

    assert "Services' CPU per 1,000 requests unknown: the definition has no services" in text
    assert "Energy of the hosts' CPUs per 1,000 answers unknown: no permission to read RAPL" in text
    assert (
        "Body bytes per 1,000 answers unknown: the load tool does not report the bytes of bodies"
        in text
    )
    assert "Network bytes per 1,000 answers, both directions unknown" in text
    assert "Peak memory of the server 1.00 MiB" in text
    assert "Price of the hosts for a million answers 0.25 for 1M answers" in text


def test_a_profile_without_a_price_is_named(trial: Trial, alice: Client) -> None:
    assert "unknown: the hardware profile Any machine has no price an hour" in page_text(
        alice, trial
    )


def test_the_environment_is_shown_next_to_expected_values(trial: Trial, alice: Client) -> None:
    doubt(trial, "suspect", STEAL)
    before = {"busy_share": 0.02, "load1": 1.5, "cpus": 2, "pressure": None,
              "tuning": {"applied": {"turbo": "off"}, "refused": {}},
              "reasons": {"pressure": "the kernel has no PSI"}}  # fmt: skip
    calm = {"steal_share": 0.0, "foreign_share": 0.01, "pressure_share": 0.3,
            "clock_mhz": [2000, 2400], "clock_step_s": 0.0, "on_battery": False,
            "throttle_count": None, "cooling_state": 0,
            "reasons": {"throttle_count": "not known: only Intel CPUs count thermal throttling"},
            "changed_settings": {}}  # fmt: skip
    stolen = {**calm, "steal_share": 0.03, "clock_mhz": [1800, 2300], "foreign_share": 0.02,
              "foreign": [{"name": "<cron>", "cpu_s": 0.5}]}  # fmt: skip
    loads = [{"interference": {"a": calm}}, {"interference": {"a": stolen}}]
    leave_json(trial, "result.json", {"hosts": {"a": before}, "loads": loads})
    text = page_text(alice, trial)

    assert "Environment of the host here worst of 2 loads" in text
    assert "CPU of other processes before the start 2 % at most 10 % ✓ as expected" in text
    assert "Waiting for CPU before the start unknown: the kernel has no PSI at most 10 %" in text
    assert "Load average (1 minute) 1.50 on 2 CPUs" in text
    assert "CPU that the hypervisor took 3 % at most 1 % ✕ not as expected" in text
    assert "CPU of other processes 2 % of a core (<cron> 500 ms) at most 5 % of a core" in text
    assert "Waiting for CPU while other processes ran 30 % at most 10 % ! not counted" in text
    assert "Clock 1 800 to 2 400 MHz" in text
    assert "Tuning turbo: off set completely" in text
    assert "Changed tuning none" in text
    assert "Thermal throttling unknown: not known: only Intel CPUs count" in text
    assert "State of cooling devices 0 at most 0 ✓ as expected" in text


def test_each_latency_names_its_load_model(trial: Trial, alice: Client) -> None:
    text = page_text(alice, trial)
    assert "Latency p99 closed loop" in text
    assert "slow answers delay the next request, so waiting is undercounted" in text
    assert "Requests per second closed loop" not in text


def test_any_percentile_is_computed(trial: Trial, alice: Client) -> None:
    histogram = Histogram.decode(bytes(trial.histograms.get(kind="ok").encoded))
    text = page_text(alice, trial, percentiles="12.5, 99.9")
    expected = histogram.percentile(12.5) / 1e3
    shown = re.search(r"p12\.5 ([\d.]+) ms", text)

    assert shown is not None
    assert float(shown[1]) == pytest.approx(expected, rel=0.01)
    assert f"Of {histogram.total_count:,}".replace(",", " ") + " good answers" in text
    assert "p99.9 unknown: needs 10 000 good answers" in text


def test_the_latency_curve_is_drawn_and_in_a_table(trial: Trial, alice: Client) -> None:
    page = alice.get(reverse("trial", args=[trial.pk]))
    script = element(page, "#latency-curve").string
    assert script is not None
    chart = json.loads(script)
    histogram = Histogram.decode(bytes(trial.histograms.get(kind="ok").encoded))
    by_label = {point["label"]: point for point in chart["points"]}

    assert by_label["p50"]["x"] == pytest.approx(0.30103, abs=1e-6), "log10(1 / (1 - q))"
    assert (by_label["p90"]["x"], by_label["p99"]["x"]) == (1, 2)
    assert by_label["p99"]["y"] == pytest.approx(histogram.percentile(99) / 1e3)
    assert "p99.99" not in by_label, "2,000 answers do not support it"
    assert [tick["label"] for tick in chart["ticks"]] == ["p0", "p50", "p90", "p99"]
    rows = [get_text(row) for row in elements(page, ".chart-and-table tbody tr")]
    assert [row.split()[0] for row in rows] == list(by_label)
    assert rows[-1] == f"{list(by_label)[-1]} {format_value(chart['points'][-1]['y'] / 1e3, 's')}"


def test_a_trial_without_answers_has_no_curve(trial: Trial, alice: Client) -> None:
    trial.histograms.all().delete()
    page = alice.get(reverse("trial", args=[trial.pk]))
    assert elements(page, "canvas[data-chart=latency]") == []
    assert "No request succeeded, so there is no latency." in get_text(page)


@pytest.mark.parametrize("percentile", ["100", "0", "-3", "p50", "50,,99", "nan"])
def test_an_invalid_percentile_is_reported(trial: Trial, alice: Client, percentile: str) -> None:
    assert "expected numbers above 0 and below 100" in page_text(
        alice, trial, percentiles=percentile
    )


def test_one_of_several_loads_is_selected(trial: Trial, alice: Client) -> None:
    leave_load(trial, 0, latencies_us=[1000], readings={})
    leave_load(trial, 1, latencies_us=[2000], readings={})
    text = page_text(alice, trial, percentiles="50", load="1")

    assert "Latency percentiles of load 2" in text
    assert "p50 2.00 ms" in text
    assert "Of 100 good answers" in text


def test_the_warm_up_is_shown_separately(trial: Trial, alice: Client) -> None:
    second = {"answered": 900, "p50_us": 1000, "p99_us": 4000}
    warmup = {"answered": 700, "p50_us": 3000, "p99_us": None}
    late = {"answered": 2, "p50_us": 9000, "p99_us": None}
    rows = {
        "warmup": {"n": 702, "slices": [{"t": -1, **warmup}, {"t": 0, **late}]},
        "slices": [{"t": 0, **second}, {"t": 1, **second}],
    }
    leave_json(trial, "rows.json", rows)
    page = alice.get(reverse("trial", args=[trial.pk])).content.decode()
    text = page_text(alice, trial)

    assert "Seconds before 0 are the warm-up, which is excluded from all results" in text
    assert "-1 warm-up 700 3.00 ms – 0 warm-up 2 9.00 ms –" in text
    assert "0 window 900 1.00 ms 4.00 ms 1 after the end 900 1.00 ms 4.00 ms" in text
    assert '"seconds": [-1, 0]' in page
    assert '"warmup": 1' in page


def test_outcomes_of_requests_are_shown(trial: Trial, alice: Client) -> None:
    """Of a server that answers with errors and breaks connections, as oha really reported it."""
    report = json.loads((GOLDEN / "oha_flaky.json").read_bytes())
    rows = {
        "schema": 3,
        "all": {"n": 360, "percentiles": dict(report["latencyPercentiles"])},
        "window": {"start_s": 0.0, "end_s": report["summary"]["total"]},
        "ok": {"value_us": [1000], "count": [320]},
        "other": {"value_us": [900], "count": [40]},
        "by_status": report["statusCodeDistribution"],
        "bytes": report["summary"]["totalData"],
        "slices": [],
    }
    Artifact.objects.filter(trial=trial).delete()
    leave_json(trial, "tool.json", report)
    leave_json(trial, "rows.json", rows)
    leave_json(trial, "result.json", {"tool": {"name": "oha"}, "loads": [{"argv": ["oha"]}]})
    text = page_text(alice, trial)

    assert "By status 200 320, 500 40" in text
    assert "Without a response broken 40 connection closed before message completed" in text
    assert "Body bytes received 4.06 KiB" in text
    assert "Bytes sent unknown" in text


def test_the_distribution_is_downloaded(trial: Trial, alice: Client, mallory: Client) -> None:
    stored = bytes(trial.histograms.get(kind="ok").encoded)
    address = reverse("trial-histogram", args=[trial.pk, "ok"])
    answer = alice.get(address)

    assert Histogram.decode(answer.content) == Histogram.decode(stored)
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert alice.get(reverse("trial-histogram", args=[trial.pk, "other"])).status_code == 404
    assert alice.get(reverse("trial-histogram", args=[trial.pk, "x"])).status_code == 404
    assert mallory.get(address).status_code == 404


def test_trials_with_damaged_files_are_shown(trial: Trial, alice: Client) -> None:
    leave_json(trial, "result.json", {"loads": "none", "hosts": None})
    assert alice.get(reverse("trial", args=[trial.pk])).status_code == 200
