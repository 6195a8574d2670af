"""The noise and the detectable changes of a host, on its page and next to the plan of a run."""

import re

import pytest
from bs4 import Tag
from django.test import Client
from django.urls import reverse

from orchestrator.calibration.calibrations import judge_calibrations
from orchestrator.fleet.models import HostChange, HostSnapshot
from orchestrator.results.models import Calibration
from orchestrator.runs.golden import NewGolden, set_golden
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.trial_order import number_build
from tests.support.factories import DEFINITION, finish_run, make_definition, record_again
from tests.support.html_pages import element, elements, field_error, get_text, values
from tests.support.world import World

HTMX = {"HTTP_HX_REQUEST": "true"}


def _address(world: World, name: str = "host") -> str:
    return reverse(name, args=[world.host.pk])


def _section(client: Client, world: World, query: str = "") -> Tag:
    return element(client.get(_address(world) + query), "section[aria-labelledby=noise]")


def _ask(client: Client, world: World, **changes: str) -> Run:
    data = {"benchmark": "server/hello", "commit": "", "pairs": "5", **changes}
    answer = client.post(_address(world, "host-calibrate"), data)
    run = Run.objects.filter(trigger="calibration").latest("created_at")
    assert answer.headers["Location"] == reverse("run", args=[run.pk])
    return run


def _calibrate(client: Client, world: World, wobble: float = 0.02) -> Calibration:
    run = finish_run(_ask(client, world), [1000], wobble=wobble)
    judge_calibrations()
    return Calibration.objects.get(run=run)


def _preview(client: Client, world: World, **changes: str) -> str:
    data = {
        "benchmark": "server/hello",
        "baseline": world.shas[0],
        "contender": "main",
        "hosts": "here",
        "rounds": "7",
    }
    answer = client.post(reverse("run-preview"), {**data, **changes}, **HTMX)
    return answer.content.decode()


def test_a_host_without_a_calibration_is_reported(world: World, alice: Client) -> None:
    assert "Not calibrated yet, so the detectable changes are unknown" in get_text(
        _section(alice, world)
    )
    panel = _preview(alice, world)
    assert "(by earlier runs there)" in panel
    assert f"{_address(world)}#noise" in values(panel, "a", "href")


def test_a_calibrated_host_shows_the_smallest_change(world: World, alice: Client) -> None:
    run = _ask(alice, world)
    assert (run.rounds, run.variants.get().commit.sha) == (10, world.shas[-1])
    assert "Calibration with Hello: the run is queued" in get_text(_section(alice, world))
    assert "Calibration" in alice.get(reverse("run", args=[run.pk])).content.decode()
    finish_run(run, [1000], wobble=0.02)
    judge_calibrations()
    section = _section(alice, world)
    text = get_text(section)
    for words in ("5 blocks detect", "7 blocks detect", "10 blocks detect", "20 blocks detect"):
        assert words in text
    for metric in ("Requests per second", "Latency p50", "Server CPU per 1,000 requests"):
        assert metric in text
    assert "Calibration with Hello" not in text
    assert reverse("run", args=[run.pk]) in values(section, "a", "href")
    assert "5 pairs" in text


def test_drift_within_pairs_is_shown(world: World, alice: Client) -> None:
    run = finish_run(_ask(alice, world), [1000])
    rates = {
        trial.pk: {"requests.rate": 1000 + trial.round + (0 if trial.round % 2 else 100)}
        for trial in Trial.objects.filter(job__run=run)
    }
    record_again(rates)
    judge_calibrations()
    rows = [get_text(row) for row in elements(_section(alice, world), "tr")]
    drifting = [row for row in rows if row.endswith(" drifts")]
    assert len(drifting) == 1
    assert drifting[0].startswith("Requests per second")
    assert drifting[0].endswith(" 5 6 % +10.0 % drifts")


def test_the_noise_between_builds_is_shown(world: World, alice: Client) -> None:
    source = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")
    make_definition(world.alice, world.project, source=source)
    run = finish_run(_ask(alice, world, pairs="10"), [1000])
    rates = {
        trial.pk: {"requests.rate": 1000 + 10 * number_build(trial.round, 5)}
        for trial in Trial.objects.filter(job__run=run)
    }
    record_again(rates)
    judge_calibrations()
    (row,) = (
        get_text(row)
        for row in elements(_section(alice, world), "tr")
        if get_text(row).startswith("Requests per second")
    )
    assert "5 builds" in row
    assert re.search(r" 1\.5\d? % ", row)


def test_ids_of_the_page_are_unique(world: World, alice: Client) -> None:
    ids = values(alice.get(_address(world)), "[id]", "id")
    assert sorted(set(ids)) == sorted(ids)


def test_the_history_of_calibrations_is_a_chart_with_a_table(world: World, alice: Client) -> None:
    first = _calibrate(alice, world)
    snapshot = HostSnapshot.objects.create(host=world.host, facts={}, fingerprint="new")
    HostChange.objects.create(
        host=world.host, snapshot=snapshot, changed={"kernel": ["1", "2"]}, at=snapshot.taken_at
    )
    assert "since the host last changed" in get_text(_section(alice, world))
    assert "here has changed since it was calibrated" in _preview(alice, world)
    second = _calibrate(alice, world, wobble=0.01)

    page = alice.get(_address(world))
    chart = page.context["noise"].chart
    (case,) = first.readings
    assert [point["value"] for point in chart["points"]] == [
        pytest.approx(each.readings[case]["requests.rate"]["sigma"] * 100)
        for each in (first, second)
    ]
    assert chart["changes"] == [{"before": 1, "label": "kernel"}]
    element(page, "[data-source=noise-series]")
    assert "js/noise.js" in page.content.decode()
    rows = elements(elements(_section(alice, world), "tbody")[-1], "tr")
    assert len(rows) == 2
    assert "before the host changed" not in get_text(rows[0])
    assert "before the host changed" in get_text(rows[1])


def test_another_series_can_be_selected(world: World, alice: Client) -> None:
    calibration = _calibrate(alice, world)
    (case,) = calibration.readings
    wanted = f"{calibration.benchmark_id}-{case}-latency.p50"
    chosen = alice.get(_address(world), {"series": wanted}).context["noise"].chosen
    assert chosen.sight.metric.key == "latency.p50"
    section = _section(alice, world, f"?series={wanted}")
    assert wanted in values(section, "option[selected]")
    assert alice.get(_address(world), {"series": "nonsense"}).status_code == 200


def test_a_plan_shows_the_smallest_change(world: World, alice: Client) -> None:
    _calibrate(alice, world)
    text = get_text(_preview(alice, world))
    assert re.search(
        r"With 7 rounds, here detects changes of about [\d.]+ % in requests per second; "
        r"for 6 % take \d+ rounds\. Its noise, ",
        text,
    )


def test_the_form_defaults_to_the_golden_run(world: World, alice: Client) -> None:
    new = NewGolden(benchmark="hello", commit=world.shas[1], every_hours=1)
    set_golden(member=world.alice, host_id=world.host.pk, new=new)
    assert world.shas[1][:10] in values(_section(alice, world), "input[value]")


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"commit": "no-such-branch"}, "commit", "no commit, branch or tag"),
        ({"pairs": "4"}, "pairs", "greater than or equal to 5"),
        ({"pairs": ""}, "pairs", "required"),
        ({"benchmark": "server/none"}, "benchmark", "valid choice"),
    ],
)
def test_an_error_is_shown_at_its_field(
    changes: dict[str, str], field: str, words: str, world: World, alice: Client
) -> None:
    data = {"benchmark": "server/hello", "commit": "", "pairs": "5", **changes}
    answer = alice.post(_address(world, "host-calibrate"), data)
    assert answer.status_code == 422
    assert words in field_error(answer, f"calibration_{field}")
    assert not Run.objects.filter(trigger="calibration").exists()


def test_viewers_read_calibrations_and_strangers_find_none(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    _calibrate(alice, world)
    assert "New calibration" in get_text(_section(alice, world))
    section = get_text(_section(bob, world))
    assert "7 blocks detect" in section
    assert "New calibration" not in section
    data = {"benchmark": "server/hello", "commit": "", "pairs": "5"}
    assert bob.post(_address(world, "host-calibrate"), data).status_code == 403
    assert mallory.post(_address(world, "host-calibrate"), data).status_code == 404
    assert Run.objects.filter(trigger="calibration").count() == 1


def test_a_run_of_one_commit_can_be_repeated(world: World, alice: Client) -> None:
    run = _ask(alice, world)
    page = alice.get(reverse("run-new"), {"again": str(run.pk)})
    assert page.status_code == 200
    assert world.shas[-1][:10] in page.content.decode()
