"""Metrics along the commits: the choices, the table, and where the data of the charts is."""

import gzip
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Commit
from orchestrator.core.clock import utc_now
from orchestrator.results.models import Baseline, ChangePoint, Series, SeriesDetection
from tests.support.factories import finish_run, make_run
from tests.support.html_pages import elements, get_text
from tests.support.world import World


def _page(client: Client, **query: Any) -> Any:
    return client.get(reverse("history"), {"benchmark": "server/hello", **query})


def _series(metric: str = "requests.rate") -> Series:
    return Series.objects.get(metric__key=metric)


def _data(client: Client, line: dict[str, Any]) -> Any:
    return client.get(line["data_url"]).json()


def _change(world: World, place: int, **changes: Any) -> ChangePoint:
    now = utc_now()
    before, commit = (Commit.objects.get(sha=world.shas[place - 1 + n]) for n in (0, 1))
    given = {
        "series": _series(), "commit": commit, "before": before, "kind": "alert",
        "change": -0.15, "low": -0.16, "high": -0.14, "p_value": 1e-9, "level_before": 1000.0,
        "level_after": 850.0, "regressed": True, "recent": True, "state": "confirmed",
        "found_at": now, "revised_at": now,
    }  # fmt: skip
    return ChangePoint.objects.create(**{**given, **changes})


def test_the_chart_fetches_one_point_a_commit_oldest_first(world: World, alice: Client) -> None:
    (chart,) = _page(alice).context["config"]["charts"]
    (line,) = chart["lines"]
    points = _data(alice, line)["points"]

    assert points["commit"] == [sha[:8] for sha in world.shas]
    assert points["value"] == pytest.approx([1000, 1001, 850], rel=0.01)
    assert points["trials"] == 6
    # One or two runs each: there is no interval.
    assert points["half_width"] == [None] * 3


def test_a_commit_of_three_runs_has_a_band(world: World, alice: Client) -> None:
    for level in (0.99, 1.0, 1.01):
        finish_run(make_run(world.alice, world.shas[:2]), [1000 * level, 1000])
    (chart,) = _page(alice).context["config"]["charts"]
    (line,) = chart["lines"]
    first, second, third = _data(alice, line)["points"]["half_width"]
    assert first > 0
    assert second > 0
    assert third is None


def test_each_row_links_to_the_comparison_with_the_previous_point(
    world: World, alice: Client
) -> None:
    newest, middle, oldest = _page(alice).context["rows"]

    assert oldest.compare_url is None
    assert f"baseline={world.shas[0]}&contender={world.shas[1]}" in middle.compare_url
    assert alice.get(newest.compare_url).status_code == 200


def test_the_table_has_the_values_of_the_chart(world: World, alice: Client) -> None:
    page = _page(alice, metric="latency.p50").content.decode()

    for sha in world.shas:
        assert sha[:10] in page
    assert " ms" in page


def test_an_unknown_choice_falls_back_to_the_default(world: World, alice: Client) -> None:
    answer = _page(alice, metric="no.such", host="nowhere", case="none", branch="none", table="9")

    assert answer.status_code == 200
    assert answer.context["history"].key == "requests.rate"


def test_an_unmeasured_metric_is_reported(world: World, alice: Client) -> None:
    page = _page(alice, metric="memory.server_peak").content.decode()

    assert "was not measured for this case" in page


def test_an_unknown_benchmark_is_not_found(world: World, alice: Client) -> None:
    answer = alice.get(reverse("history"), {"benchmark": "server/none"})

    assert answer.status_code == 404
    assert "The team has no benchmark none" in answer.content.decode()


def test_several_metrics_have_a_chart_each(world: World, alice: Client) -> None:
    answer = _page(alice, metric=["requests.rate", "latency.p99"], table="2")

    config = answer.context["config"]
    assert [chart["metric"] for chart in config["charts"]] == ["requests.rate", "latency.p99"]
    assert [line["number"] for chart in config["charts"] for line in chart["lines"]] == [1, 2]
    assert answer.context["history"].key == "latency.p99"
    assert {_data(alice, chart["lines"][0])["series"]["unit"] for chart in config["charts"]} == {
        "1/s",
        "s",
    }


def test_the_table_is_paged(world: World, alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.web.history.views.ROWS", 2)
    first = _page(alice)
    assert [row.point.commit.sha for row in first.context["rows"]] == world.shas[:0:-1]

    second = alice.get(reverse("history") + first.context["older"])
    assert [row.point.commit.sha for row in second.context["rows"]] == world.shas[:1]
    assert second.context["older"] is None
    assert "before" not in second.context["newest"]


def test_chart_data_are_compressed_and_cached(world: World, alice: Client) -> None:
    address = reverse("history-data", args=[_series().pk])
    first = alice.get(address, headers={"accept-encoding": "gzip"})

    assert first.headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(first.content)) == alice.get(address).json()
    again = alice.get(address, headers={"if-none-match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    finish_run(make_run(world.alice, world.shas[:2]), [900, 900])
    anew = alice.get(address, headers={"if-none-match": first.headers["ETag"]})
    assert anew.status_code == 200


def test_a_stranger_sees_no_series(world: World, mallory: Client, bob: Client) -> None:
    sha = world.shas[0][:8]
    for page, more in (
        ("history-data", []),
        ("history-commit", [sha]),
        ("history-point", [sha]),
    ):
        address = reverse(page, args=[_series().pk, *more])
        assert mallory.get(address).status_code == 404
        assert bob.get(address).status_code == 200


def test_changes_outliers_and_baselines_are_marked(world: World, alice: Client) -> None:
    _change(world, 2, message="three pairs of trials")
    commit = Commit.objects.get(sha=world.shas[1])
    Baseline.objects.create(series=_series(), commit=commit, reason="a new server")
    SeriesDetection.objects.create(
        series=_series(), at=utc_now(), points=3, noise=0.01, unstable=True, outliers=[commit.pk]
    )
    answer = _page(alice)
    data = _data(alice, answer.context["config"]["charts"][0]["lines"][0])
    text = " ".join(answer.content.decode().split())

    (change,) = data["changes"]
    assert (change["at"], change["kind"], change["state"]) == (2, "alert", "confirmed")
    assert (change["change"], change["regressed"]) == (-0.15, True)
    assert (data["outliers"], data["baseline"], data["unstable"]) == ([1], 1, True)
    assert "−15.0 % certain, confirmed" in text
    assert "three pairs of trials" in text
    assert "a new server" in text
    assert "too often, so its change points are not reported" in text


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("confirmed: −15.0 % in 6 blocks", "confirmed: −15.0 % in 6 blocks"),
        ("measured by another run", "confirmed measured by another run"),
        ("", "confirmed"),
    ],
)
def test_the_state_of_a_change_point_is_shown_once(
    world: World, alice: Client, message: str, shown: str
) -> None:
    change = _change(world, 2, kind="candidate", message=message)
    (row,) = elements(_page(alice), "td.why")
    assert get_text(row).startswith(f"{shown} Measure again now")
    point = alice.get(reverse("history-point", args=[change.series_id, world.shas[2]]))
    (shift,) = elements(point, "dd:has([data-verdict])")
    assert get_text(shift).endswith(f" suspected, {shown}")


def test_a_member_dismisses_a_change(world: World, alice: Client, bob: Client) -> None:
    change = _change(world, 2, state="open")
    address = reverse("history-dismiss", args=[change.pk])
    assert bob.post(address, {"reason": "meant so"}).status_code == 403
    assert alice.post(address, {"reason": " "}).status_code == 400

    back = f"{reverse('history')}?benchmark=server/hello"
    assert alice.post(address, {"reason": "meant so", "back": back}).url == back
    change.refresh_from_db()
    assert change.state == "dismissed"
    assert "meant so" in _page(alice).content.decode()


def test_a_member_has_both_commits_measured_again(world: World, alice: Client, bob: Client) -> None:
    change = _change(world, 2, state="open")
    address = reverse("history-confirm", args=[change.pk])
    assert address in _page(alice).content.decode()
    assert address not in _page(bob).content.decode()
    assert bob.post(address).status_code == 403

    answer = alice.post(address)
    change.refresh_from_db()
    assert answer.url == reverse("run", args=[change.run_id])
    assert change.state == "confirming"
    assert alice.post(address).status_code == 409


def test_redirects_stay_on_the_site(world: World, alice: Client) -> None:
    change = _change(world, 2, state="open")
    address = reverse("history-dismiss", args=[change.pk])
    answer = alice.post(address, {"reason": "x", "back": "https://example.org/"})
    assert answer.url == reverse("history")


def test_cached_parts_are_rendered_again_after_a_change(world: World, alice: Client) -> None:
    address = reverse("history-data", args=[_series().pk])

    def load_data() -> Any:
        return alice.get(address, headers={"if-none-match": '"old"'}).json()

    page, first = _page(alice).content.decode(), load_data()
    assert load_data() == alice.get(address).json() == first

    change = _change(world, 1, state="open")
    assert len(load_data()["changes"]) == 1
    assert "certain, not confirmed" in _page(alice).content.decode() != page
    ChangePoint.objects.filter(pk=change.pk).update(state="refuted")
    assert load_data()["changes"][0]["state"] == "refuted"
    assert "certain, refuted" in _page(alice).content.decode()
    Commit.objects.filter(sha=world.shas[2]).update(position=None)
    assert len(load_data()["points"]["commit"]) == 2
    assert world.shas[2][:10] not in _page(alice).content.decode()
