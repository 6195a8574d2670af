"""Two commits side by side."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.comparisons.compare import compare_commits
from orchestrator.runs.models import Trial
from orchestrator.web.comparisons.presenters import plan_more_blocks
from tests.support.factories import (
    DEFINITION,
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_run,
    record_again,
)
from tests.support.html_pages import element, elements, get_text, parse_html, values
from tests.support.trials import ERRORS, SLOW, STEAL, doubt, invalidate
from tests.support.world import World


def _page(client: Client, world: World, **changes: Any) -> Any:
    query = {"benchmark": "server/hello", "baseline": world.shas[0], "contender": world.shas[2]}
    return client.get(reverse("compare"), {**query, **changes})


def test_the_page_begins_with_the_verdict(world: World, alice: Client) -> None:
    headline = element(_page(alice, world), ".headline")

    assert headline["data-verdict"] == "regressed"
    assert "is a regression" in get_text(headline)


def test_a_claimed_change_is_shown_with_its_likely_size(
    personas: Personas, alice: Client, tmp_path: Path
) -> None:
    """p is just small enough for the claim."""
    project, shas = make_project(personas.alice, tmp_path / "repository")
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    finish_run(make_run(personas.alice, shas[:2], rounds=7), [1000, 937], wobble=0.02)
    query = {"benchmark": "server/hello", "baseline": shas[0], "contender": shas[1]}
    page = alice.get(reverse("compare"), query)

    assert re.search(r"\+\d\.\d %, likely \+\d\.\d %", get_text(element(page, ".headline h2")))
    (cell, *_) = elements(page, "table.compared > tbody > tr:not(.detail) td.number")
    assert re.match(r"−\d\.\d %, likely −\d\.\d %", get_text(cell))
    assert "likely −" in get_text(elements(page, "table.metrics")[0])


def test_a_verdict_that_depends_on_suspect_blocks_is_marked(world: World, alice: Client) -> None:
    run = finish_run(make_run(world.alice, world.shas[:2], rounds=10), [1000, 1000])
    suspect = Trial.objects.filter(job__run=run, variant__position=1, round__lte=2)
    suspect.update(validity="suspect", reasons=[STEAL])
    record_again({trial.pk: {"requests.rate": 700.0} for trial in suspect})
    page = _page(alice, world, contender=world.shas[1], run=run.pk)
    assert "Without them the verdict is equivalent, not inconclusive." in get_text(
        element(page, "ul.notes")
    )
    assert "! 2 suspect, without: equivalent" in get_text(page)


def test_a_contender_that_fails_is_shown_as_broken(world: World, alice: Client) -> None:
    run = make_run(world.alice, [world.shas[0], world.shas[1]], rounds=5)
    finish_run(run, [1000, 1000])
    invalidate(run, ERRORS, variant__position=1)
    page = _page(alice, world, contender=world.shas[1])

    headline = element(page, ".headline")
    assert headline["data-verdict"] == "broken"
    assert "it fails where" in get_text(headline)
    detail = get_text(element(page, "tr.detail"))
    assert "The contender failed in 5 of 11 blocks." in detail


def test_the_change_with_saturated_blocks_is_next_to_the_interval(
    world: World, alice: Client
) -> None:
    invalidate(world.run, SLOW, variant__position=2, round=1)
    shown = [get_text(row) for row in elements(_case(alice, world), "table.metrics > tbody > tr")]
    (p50,) = [row for row in shown if row.startswith("Latency p50")]
    assert re.search(r"at least [+−]\d.* % \([+−].* %\) with 1 saturated block", p50)
    assert not any("saturated" in row for row in shown if row.startswith("Requests per second"))


def _case_address(client: Client, world: World) -> str:
    """The page of the case in the first row."""
    return reverse("compare") + values(_page(client, world), "th a[href^='case?']", "href")[0]


def _case(client: Client, world: World, *, whole: bool = True, **changes: Any) -> Any:
    """One case in full: the page that the first row leads to, or the part for htmx."""
    headers = {} if whole else {"HX-Request": "true"}
    return client.get(_case_address(client, world), changes, headers=headers)


def test_a_row_shows_primary_metrics_and_links_to_the_case(world: World, alice: Client) -> None:
    table = element(_page(alice, world), "table.compared")
    rows = [get_text(row) for row in elements(table, "tr:not(.detail, .detail tr)")]
    assert any("Requests per second" in row for row in rows)
    assert not any("Latency p99" in row for row in rows)

    case = element(_case(alice, world), ".case-detail")
    primary, more = elements(case, "table")[0], element(case, "details")
    assert "Requests per second" in get_text(primary)
    assert "Latency p99" not in get_text(primary)
    assert "Latency p99" in get_text(more)


def test_a_comparison_of_one_case_is_shown_in_full(world: World, alice: Client) -> None:
    detail = get_text(element(_page(alice, world), "tr.detail"))

    assert "Change of latency at each percentile" in detail
    assert "Latency p99" in detail


def test_htmx_gets_a_table_row(world: World, alice: Client) -> None:
    part = _case(alice, world, whole=False)
    (row,) = parse_html(part).find_all(recursive=False)

    assert (row.name, row["class"]) == ("tr", ["detail"])
    assert "Latency percentiles" in get_text(row)


def test_the_adjustment_for_multiple_tests_is_shown(world: World, alice: Client) -> None:
    page = _page(alice, world)

    assert "Of 3 primary metrics 3 look changed" in get_text(page)
    assert "3 survive the correction" in get_text(page)
    assert "q value " in page.content.decode()


def test_interval_bars_are_on_the_side_of_the_change(world: World, alice: Client) -> None:
    paths = values(_page(alice, world), "path.point", "d")
    places = [int(path.removeprefix("M").removesuffix(" 6h0")) for path in paths]
    bars = {row.metric.key: row.bar for row in _case(alice, world).context["case"].primary}

    assert places[0] < 0 < places[1]
    assert bars["requests.rate"].point < 100 < bars["latency.p50"].point
    assert elements(_case(alice, world), ".interval")


def test_the_order_effect_is_next_to_each_metric(world: World, alice: Client) -> None:
    page = _case(alice, world)
    rows = elements(page, "table.metrics > tbody > tr")
    heads = [get_text(each) for each in elements(page, "table.metrics thead th")]
    shown = [get_text(elements(row, "td")[-1]) for row in rows]

    assert heads.count("Order effect") == len(elements(page, "table.metrics"))
    assert all(re.fullmatch(r"[+−]?\d.* % [+−]?\d.* % to [+−]?\d.* %", each) for each in shown)


def test_an_order_effect_that_is_not_separated_has_a_reason(world: World, alice: Client) -> None:
    world.run = world.measure_run(1000, 400, rounds=2)
    table = _page(alice, world, contender=world.shas[1], run=str(world.run.pk))
    (address,) = values(table, "th a[href^='case?']", "href")
    page = alice.get(reverse("compare") + address)

    assert "not separated: the contender was first in 1 and second in 1 blocks" in get_text(page)


def test_rows_show_both_values_next_to_the_change(world: World, alice: Client) -> None:
    row = element(_page(alice, world), "table.compared > tbody > tr:not(.detail)")
    rate, p50, _ = elements(row, "td.number")

    assert get_text(rate).startswith("−15.0 % 1 000 1/s → 850 1/s −15.")
    assert get_text(p50).startswith("+17.6 % 4.00 ms → 4.70 ms +16.")


def test_all_bars_of_a_table_have_one_labelled_scale(world: World, alice: Client) -> None:
    page = _page(alice, world)
    table = element(page, "table.compared")
    boxes = [each["viewbox"] for each in elements(page, ".compared > tbody > tr > td.number svg")]
    axes = {get_text(each) for each in elements(table, ".number .bar-head")}
    reach = int(boxes[0].split()[2]) // 2

    assert len(boxes) == 3
    assert len(set(boxes)) == 1
    assert axes == {f"−{reach / 100:.0f} % 0 +{reach / 100:.0f} %"}
    assert f"All bars have one scale, from −{reach / 100:.0f} %" in get_text(page)
    ends = [
        abs(int(end))
        for path in values(page, "path.range", "d")
        for end in path.removeprefix("M").split(" 6H")
    ]
    assert max(ends) <= reach < 1.2 * max(ends)


def test_a_change_without_an_interval_is_within_the_scale(world: World, alice: Client) -> None:
    world.run = world.measure_run(1000, 400, rounds=1)
    page = _page(alice, world, contender=world.shas[1], run=str(world.run.pk))
    row = element(page, "table.compared > tbody > tr:not(.detail)")
    (box, *_), (point, *_) = (
        [each["viewbox"] for each in elements(row, "svg")],
        values(page, "path.point", "d"),
    )

    assert get_text(elements(row, "td.number")[0]) == "−60.2 % 1 000 1/s → 398 1/s"
    assert int(box.split()[0]) < int(point.removeprefix("M").removesuffix(" 6h0")) < -5000
    assert elements(row, "path.range") == []


def test_more_blocks_than_one_run_has_are_worded_so(world: World, alice: Client) -> None:
    noisy = make_run(world.alice, world.shas[:2], rounds=5)
    world.run = finish_run(noisy, [1000, 1000], wobble=0.2)
    page = _page(alice, world, contender=world.shas[1], run=str(noisy.pk))
    text = get_text(page)
    row = get_text(element(page, "table.compared > tbody > tr:not(.detail)"))

    assert "? inconclusive may stay open" in row
    assert "1 case may stay open, even with 100 further blocks" in text
    assert "Measure 100 more" not in text
    assert re.search(r"may stay open; needs about \d+ to over 100 more blocks", text)
    assert "in about" not in text


def test_more_blocks_are_shown_as_a_range(world: World, alice: Client) -> None:
    noisy = finish_run(make_run(world.alice, world.shas[:2], rounds=5), [1000, 1000], wobble=0.01)
    page = _page(alice, world, contender=world.shas[1], run=str(noisy.pk))
    text = get_text(page)
    match = re.search(r"needs about (\d+) to (\d+) more blocks", text)
    button = re.search(r"Measure (\d+) more blocks?", text)
    assert match is not None
    assert button is not None
    least, most = map(int, match.groups())
    assert 1 <= least <= int(button[1]) <= most <= 100
    assert f"about {least} to {most} more blocks" in get_text(
        element(page, "table.compared > tbody > tr:not(.detail)")
    )


def test_the_time_of_more_blocks_is_that_of_all_cases_in_one_run(world: World) -> None:
    source = DEFINITION.replace("connections: [4]", "connections: [4, 8]")
    make_definition(world.alice, world.project, slug="two", source=source)
    run = make_run(world.alice, world.shas[:2], benchmark="two", rounds=7)
    finish_run(run, [1000, 1000], wobble=0.012, factors={"connections 8": 1.015})
    report = compare_commits(
        world.alice,
        benchmark=run.definition.benchmark,
        baseline=world.commits[0],
        contender=world.commits[1],
    )
    first, second = report.cases
    more = plan_more_blocks(report, report.cases, "server/two")

    assert more is not None
    assert first.missing_blocks != second.missing_blocks
    assert more.blocks == max(each.missing_blocks or 0 for each in report.cases)
    # The trials of both cases take equally long.
    block_s = (first.missing_s or 0) / (first.missing_blocks or 1)
    assert more.seconds == pytest.approx(2 * more.blocks * block_s)


def _chart(page: Any, kind: str) -> Any:
    data = element(page, f"script[id^='{kind}-'][type='application/json']").string
    assert data is not None
    return json.loads(data)


def test_both_latency_curves_are_passed_to_the_chart(world: World, alice: Client) -> None:
    page = _case(alice, world)
    baseline, contender = _chart(page, "latency")["series"]

    assert world.shas[0][:7] in baseline["label"]
    assert world.shas[2][:7] in contender["label"]
    before, after = (
        next(point for point in each["points"] if point["label"] == "p50")
        for each in (baseline, contender)
    )
    assert before["x"] == after["x"] == 0
    assert after["y"] > before["y"] > 0
    (table,) = [
        each for each in elements(page, "table")
        if get_text(each).startswith("Latency percentiles of both sides")
    ]  # fmt: skip
    assert elements(table, "td")


def test_the_change_of_each_percentile_has_a_band(world: World, alice: Client) -> None:
    page = _case(alice, world)
    middle = next(each for each in _chart(page, "quantiles")["points"] if each["label"] == "p50")

    assert middle["bandLow"] < middle["low"] < middle["y"] < middle["high"] < middle["bandHigh"]
    assert middle["y"] > 10
    assert "from 6 blocks" in get_text(page)


def test_each_value_links_to_its_evidence(world: World, alice: Client) -> None:
    doubt(Trial.objects.filter(variant__commit__sha=world.shas[2]).earliest("round"), "invalid")
    page = _case(alice, world)
    trials = values(page, "a[href^='/trials/']", "href")
    points = values(page, "a[href^='/history/'][href*='/points/']", "href")

    assert len(set(trials)) == 2 * 6
    assert "round 1, excluded" in get_text(element(page, "[data-excluded]"))
    assert "oha 1.0" in get_text(page)
    assert len(set(points)) == 2 * 4
    assert all("6 trials" in alice.get(each).content.decode() for each in points[::2])
    assert trials[0] in alice.get(points[0]).content.decode()
    assert alice.get(trials[0]).status_code == 200


def test_a_case_is_hidden_from_strangers(world: World, alice: Client, mallory: Client) -> None:
    assert mallory.get(_case_address(alice, world)).status_code == 404
    assert _case(alice, world, case_key="nonsense").status_code == 404


def test_short_hashes_are_accepted(world: World, alice: Client) -> None:
    answer = _page(alice, world, baseline=world.shas[0][:8], contender=world.shas[2][:8])

    assert answer.status_code == 200
    assert answer.context["report"].contender.sha == world.shas[2]


def test_commits_never_measured_together_show_a_warning(
    personas: Personas, alice: Client, tmp_path: Path
) -> None:
    project, shas = make_project(personas.alice, tmp_path / "repository")
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    for pair in (shas[:2], shas[1:]):
        finish_run(make_run(personas.alice, pair), [1000, 800])
    query = {"benchmark": "server/hello", "baseline": shas[0], "contender": shas[2]}
    answer = alice.get(reverse("compare"), query)
    page = answer.content.decode()

    assert answer.status_code == 200
    assert "! unpaired" in get_text(page)
    assert values(page, ".headline .verdict", "data-verdict") == ["differs, not confirmed"]
    assert "? differs, not confirmed" in get_text(page)
    assert "machine drift may be part of the difference" in page
    assert "Measure both in one run" in page


def test_an_unmeasured_commit_offers_a_run(
    personas: Personas, alice: Client, tmp_path: Path
) -> None:
    project, shas = make_project(personas.alice, tmp_path / "repository")
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    finish_run(make_run(personas.alice, shas[:2]), [1000, 1000])
    query = {"benchmark": "server/hello", "baseline": shas[0], "contender": shas[2]}
    answer = alice.get(reverse("compare"), query)

    assert answer.status_code == 404
    assert "start a run with both" in answer.content.decode()
    assert "New run with these commits" in answer.content.decode()


def test_an_unknown_commit_is_named(world: World, alice: Client) -> None:
    answer = _page(alice, world, contender="0123456789")

    assert answer.status_code == 404
    assert "0123456789" in answer.content.decode()


def test_a_commit_is_not_compared_with_itself(world: World, alice: Client) -> None:
    answer = _page(alice, world, contender=world.shas[0])

    assert answer.status_code == 400
    assert "cannot be compared with itself" in answer.content.decode()


def test_a_run_of_another_team_is_not_found(world: World, alice: Client) -> None:
    assert _page(alice, world, run=str(world.run.pk)).status_code == 200
    assert _page(alice, world, run="nonsense").status_code == 404


def test_the_form_offers_measured_commits(world: World, alice: Client) -> None:
    page = alice.get(reverse("compare"))

    assert world.shas[1][:10] in values(page, "option")
    assert "Choose two of 3 measured commits" in get_text(page)


def test_user_input_is_escaped(world: World, alice: Client) -> None:
    page = _page(alice, world, contender="<script>alert(1)</script>").content.decode()

    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
