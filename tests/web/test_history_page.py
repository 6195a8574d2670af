"""One metric along the commits."""

from typing import Any

from django.test import Client
from django.urls import reverse

from tests.web.conftest import World


def _page(client: Client, **query: Any) -> Any:
    return client.get(reverse("history"), {"benchmark": "server/hello", **query})


def test_it_shows_one_point_a_commit_oldest_first_in_the_chart(world: World, alice: Client) -> None:
    chart = _page(alice).context["chart"]

    assert [point["label"] for point in chart["points"]] == [sha[:7] for sha in world.shas]
    for point in chart["points"]:
        assert point["low"] < point["value"] < point["high"]


def test_it_links_each_point_with_the_one_before(world: World, alice: Client) -> None:
    answer = _page(alice)
    urls = [point["url"] for point in answer.context["chart"]["points"]]

    assert urls[0] is None
    assert f"baseline={world.shas[0]}&contender={world.shas[1]}" in urls[1]
    assert alice.get(urls[2]).status_code == 200


def test_it_has_a_table_with_the_same_numbers(world: World, alice: Client) -> None:
    page = _page(alice, metric="latency.p50").content.decode()

    for sha in world.shas:
        assert sha[:10] in page
    assert " ms" in page


def test_it_draws_short_times_in_the_unit_that_reads_best(world: World, alice: Client) -> None:
    chart = _page(alice, metric="latency.p50").context["chart"]

    assert chart["unit"] == "ms"
    assert 3.5 < chart["points"][0]["value"] < 4.5


def test_it_falls_back_where_a_choice_is_unknown(world: World, alice: Client) -> None:
    answer = _page(alice, metric="no.such", host="nowhere", case="none")

    assert answer.status_code == 200
    assert answer.context["history"].key == "requests.rate"


def test_it_says_that_a_metric_was_not_measured(world: World, alice: Client) -> None:
    page = _page(alice, metric="memory.server_peak").content.decode()

    assert "was not measured for this case" in page


def test_it_says_that_an_unknown_benchmark_is_not_there(world: World, alice: Client) -> None:
    answer = alice.get(reverse("history"), {"benchmark": "server/none"})

    assert answer.status_code == 404
    assert "the team has no benchmark none" in answer.content.decode()
