"""Two commits side by side."""

import json
import re
from pathlib import Path
from typing import Any

from django.test import Client
from django.urls import reverse

from tests.support.factories import (
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.web.conftest import World


def _page(client: Client, world: World, **changes: Any) -> Any:
    query = {"benchmark": "server/hello", "baseline": world.shas[0], "contender": world.shas[2]}
    return client.get(reverse("compare"), {**query, **changes})


def _median(series: dict[str, Any]) -> dict[str, Any]:
    return next(point for point in series["points"] if point["label"] == "p50")


def test_it_begins_with_the_verdict_in_a_sentence(world: World, alice: Client) -> None:
    page = _page(alice, world).content.decode()

    headline = page[page.index('class="headline"') : page.index("</section>")]
    assert 'data-verdict="regressed"' in headline
    assert "is a regression" in headline


def test_it_shows_primary_metrics_first_and_folds_the_others(world: World, alice: Client) -> None:
    page = _page(alice, world).content.decode()
    folded = page.index("<details>")

    assert page.index("Requests per second") < folded
    assert page.index("Latency p99") > folded


def test_it_draws_interval_bars_on_the_side_of_the_change(world: World, alice: Client) -> None:
    case = _page(alice, world).context["cases"][0]
    bars = {row.metric.key: row.bar for row in case.primary}

    assert bars["requests.rate"].point < 100 < bars["latency.p50"].point
    assert 'class="interval"' in _page(alice, world).content.decode()


def test_it_hands_both_latency_curves_to_the_chart(world: World, alice: Client) -> None:
    page = _page(alice, world).content.decode()
    found = re.search(r'<script id="latency-[^"]+" type="application/json">(.*?)</script>', page)
    assert found is not None
    baseline, contender = json.loads(found[1])["series"]

    assert world.shas[0][:7] in baseline["label"]
    assert world.shas[2][:7] in contender["label"]
    before, after = (_median(each) for each in (baseline, contender))
    assert before["x"] == after["x"] == 0
    assert after["y"] > before["y"] > 0
    assert "<td" in page[page.index("Latency percentiles of both commits</caption>") :]


def test_it_takes_short_hashes(world: World, alice: Client) -> None:
    answer = _page(alice, world, baseline=world.shas[0][:8], contender=world.shas[2][:8])

    assert answer.status_code == 200
    assert answer.context["report"].contender.sha == world.shas[2]


def test_it_says_when_two_commits_were_never_measured_together(
    personas: Personas, alice: Client, tmp_path: Path
) -> None:
    project, shas = make_project(personas.alice, tmp_path / "repository")
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    for pair in (shas[:2], shas[1:]):
        finish_run(make_run(personas.alice, pair), [1000, 1000])
    query = {"benchmark": "server/hello", "baseline": shas[0], "contender": shas[2]}
    answer = alice.get(reverse("compare"), query)

    assert answer.status_code == 404
    assert "never measured together" in answer.content.decode()
    assert "New run with these commits" in answer.content.decode()


def test_it_says_which_commit_it_does_not_know(world: World, alice: Client) -> None:
    answer = _page(alice, world, contender="0123456789")

    assert answer.status_code == 404
    assert "0123456789" in answer.content.decode()


def test_it_does_not_compare_a_commit_with_itself(world: World, alice: Client) -> None:
    answer = _page(alice, world, contender=world.shas[0])

    assert answer.status_code == 400
    assert "cannot be compared with itself" in answer.content.decode()


def test_it_keeps_to_the_team_when_a_run_is_named(world: World, alice: Client) -> None:
    assert _page(alice, world, run=str(world.run.pk)).status_code == 200
    assert _page(alice, world, run="nonsense").status_code == 404


def test_it_asks_which_commits_and_offers_the_measured_ones(world: World, alice: Client) -> None:
    page = alice.get(reverse("compare")).content.decode()

    assert f'<option value="{world.shas[1][:10]}">' in page
    assert "3 are known" in page


def test_it_escapes_what_people_typed(world: World, alice: Client) -> None:
    page = _page(alice, world, contender="<script>alert(1)</script>").content.decode()

    assert "<script>alert" not in page
