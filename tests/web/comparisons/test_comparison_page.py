"""Two commits side by side."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from django.test import Client
from django.urls import reverse

from orchestrator.runs.models import Trial
from tests.support.factories import (
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.page_text import text_in
from tests.support.trials import doubt
from tests.web.conftest import World


def _page(client: Client, world: World, **changes: Any) -> Any:
    query = {"benchmark": "server/hello", "baseline": world.shas[0], "contender": world.shas[2]}
    return client.get(reverse("compare"), {**query, **changes})


def test_the_page_begins_with_the_verdict(world: World, alice: Client) -> None:
    page = _page(alice, world).content.decode()

    headline = page[page.index('class="headline"') : page.index("</section>")]
    assert 'data-verdict="regressed"' in headline
    assert "is a regression" in headline


def _case(client: Client, world: World, *, whole: bool = True, **changes: Any) -> Any:
    """One case in full: the page that the first row leads to, or the part for htmx."""
    found = re.search(r'<a href="(case\?[^"]*)"', _page(client, world).content.decode())
    assert found is not None
    return client.get(
        reverse("compare") + unescape(found[1]),
        changes,
        headers={} if whole else {"HX-Request": "true"},
    )


def test_a_row_shows_primary_metrics_and_links_to_the_case(world: World, alice: Client) -> None:
    page = _page(alice, world).content.decode()
    rows = page[: page.index('class="detail"')]
    assert "Requests per second" in rows
    assert "Latency p99" not in rows

    whole = _case(alice, world).content.decode()
    folded = whole.index("<details>")
    assert whole.index("Requests per second") < folded
    assert whole.index("Latency p99") > folded


def test_a_comparison_of_one_case_is_shown_in_full(world: World, alice: Client) -> None:
    page = _page(alice, world).content.decode()

    assert page.count('class="detail"') == 1
    assert "Change of latency at each percentile" in page
    assert "Latency p99" in page


def test_htmx_gets_a_table_row(world: World, alice: Client) -> None:
    part = _case(alice, world, whole=False).content.decode()

    assert part.strip().startswith('<tr class="detail">')
    assert "Latency percentiles" in part
    assert "<html" not in part


def test_the_adjustment_for_multiple_tests_is_shown(world: World, alice: Client) -> None:
    page = _page(alice, world).content.decode()

    assert "Of 3 primary metrics 3 look changed" in text_in(page)
    assert "3 survive the correction" in text_in(page)
    assert "q = " in page


def test_interval_bars_are_on_the_side_of_the_change(world: World, alice: Client) -> None:
    page = _page(alice, world).content.decode()
    places = [int(each) for each in re.findall(r'<path class="point" d="M(-?\d+) 6h0"', page)]
    bars = {row.metric.key: row.bar for row in _case(alice, world).context["case"].primary}

    assert places[0] < 0 < places[1]
    assert bars["requests.rate"].point < 100 < bars["latency.p50"].point
    assert 'class="interval"' in _case(alice, world).content.decode()


def _chart(page: str, kind: str) -> Any:
    found = re.search(rf'<script id="{kind}-[^"]+" type="application/json">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def test_both_latency_curves_are_passed_to_the_chart(world: World, alice: Client) -> None:
    page = _case(alice, world).content.decode()
    baseline, contender = _chart(page, "latency")["series"]

    assert world.shas[0][:7] in baseline["label"]
    assert world.shas[2][:7] in contender["label"]
    before, after = (
        next(point for point in each["points"] if point["label"] == "p50")
        for each in (baseline, contender)
    )
    assert before["x"] == after["x"] == 0
    assert after["y"] > before["y"] > 0
    assert "<td" in page[page.index("Latency percentiles of both sides</caption>") :]


def test_the_change_of_each_percentile_has_a_band(world: World, alice: Client) -> None:
    page = _case(alice, world).content.decode()
    middle = next(each for each in _chart(page, "quantiles")["points"] if each["label"] == "p50")

    assert middle["bandLow"] < middle["low"] < middle["y"] < middle["high"] < middle["bandHigh"]
    assert middle["y"] > 10
    assert "from 6 blocks" in page


def test_each_value_links_to_its_evidence(world: World, alice: Client) -> None:
    doubt(Trial.objects.filter(variant__commit__sha=world.shas[2]).earliest("round"), "invalid")
    page = _case(alice, world).content.decode()
    trials = re.findall(r'href="(/trials/[^"]+)"', page)
    points = re.findall(r'href="(/history/\d+/points/[^"]+)"', page)

    assert len(set(trials)) == 2 * 6
    assert page.count("data-excluded") == 1
    assert "round 1, excluded" in page
    assert "oha 1.0" in page
    assert len(set(points)) == 2 * 4
    assert all("6 trials" in alice.get(each).content.decode() for each in points[::2])
    assert trials[0] in alice.get(points[0]).content.decode()
    assert alice.get(trials[0]).status_code == 200


def test_a_case_is_hidden_from_strangers(world: World, alice: Client, mallory: Client) -> None:
    found = re.search(r'<a href="(case\?[^"]*)"', _page(alice, world).content.decode())
    assert found is not None
    assert mallory.get(reverse("compare") + unescape(found[1])).status_code == 404
    assert _case(alice, world, of="nonsense").status_code == 404


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
        finish_run(make_run(personas.alice, pair), [1000, 1000])
    query = {"benchmark": "server/hello", "baseline": shas[0], "contender": shas[2]}
    answer = alice.get(reverse("compare"), query)
    page = answer.content.decode()

    assert answer.status_code == 200
    assert "! unpaired" in page
    assert "drift of the machine is not removed" in page
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
    page = alice.get(reverse("compare")).content.decode()

    assert f'<option value="{world.shas[1][:10]}">' in page
    assert "Choose two of 3 measured commits" in page


def test_user_input_is_escaped(world: World, alice: Client) -> None:
    page = _page(alice, world, contender="<script>alert(1)</script>").content.decode()

    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
