"""Finished results that were measured elsewhere, sent through the API."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from orchestrator.accounts.models import Team
from orchestrator.benchmarks.matrix import build_case
from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.fleet.models import HardwareProfile, Host
from orchestrator.fleet.selectors import load_own_hosts
from orchestrator.measurements.ingest import _derive_result_id
from orchestrator.measurements.metrics import UNUSED_FOR, store_metrics
from orchestrator.results.models import Metric, Point, Reading, Series
from orchestrator.runs.availability import load_choices
from orchestrator.runs.models import Trial
from tests.api.conftest import ApiClient
from tests.support import factories
from tests.support.fetches import run_fetches
from tests.support.world import World

SHA = "a" * 40
AT = "2026-11-20T08:00:00Z"


_numbers = count()


def result(**changes: Any) -> dict[str, Any]:
    """Each with an id of its own, unless one is given."""
    return {
        "id": f"sent-{next(_numbers)}",
        "project": "server",
        "benchmark": "hello",
        "host": "ci-7",
        "commit": SHA,
        "parameters": {"connections": 4},
        "metrics": {"requests.rate": 1000.0, "latency.p50": 0.004},
        "at": AT,
        **changes,
    }


def send(client: ApiClient, *results: dict[str, Any]) -> Any:
    return client.post("results", {"results": list(results)})


def read_counts(answer: Any) -> tuple[int, int]:
    assert answer.status_code == 200, answer.content
    body = answer.json()
    return body["accepted"], body["repeated"]


def test_an_uploaded_result_creates_missing_rows(world: World, alice: ApiClient) -> None:
    facts = {"subject": "Faster", "author": "Ada", "committed_at": AT, "parents": ["b" * 40]}
    assert read_counts(
        send(alice, result(commit_facts=facts, block="b1", note="by hand", id="7"))
    ) == (
        1,
        0,
    )
    reading = Reading.objects.get()
    assert (reading.commit.sha, reading.commit.subject) == (SHA, "Faster")
    assert reading.host.name == "ci-7"
    assert reading.host.profile.slug == "external"
    assert reading.provenance == {"token": "test", "id": "7", "block": "b1", "note": "by hand"}
    assert Series.objects.count() == 2
    point = Point.objects.get(series__metric__key="requests.rate")
    assert (point.trials, point.values, point.mean) == (1, [1000.0], 1000.0)
    assert point.blocks != [0]


def test_a_new_commit_of_the_default_branch_is_the_newest_one(
    world: World, alice: ApiClient
) -> None:
    newest = max(Commit.objects.values_list("position", flat=True))
    send(alice, result(), result(commit="c" * 40, commit_facts={"branch": "topic"}))
    assert Commit.objects.get(sha=SHA).position == newest + 1
    assert Commit.objects.get(sha="c" * 40).position is None


def test_a_commit_of_the_repository_keeps_its_position(world: World, alice: ApiClient) -> None:
    sha = factories.commit_files(world.repository, {"file.txt": "new\n"}, 9)
    facts = {"subject": "not what it says"}
    send(alice, result(commit=sha, commit_facts=facts), result(commit=world.shas[0]))
    assert Commit.objects.get(sha=sha).subject == "not what it says"
    run_fetches()
    assert Commit.objects.get(sha=sha).subject == "version 9"
    assert Commit.objects.filter(sha=world.shas[0]).count() == 1


def test_a_result_belongs_to_the_case_of_the_matrix(world: World, alice: ApiClient) -> None:
    world.queue_run()
    known = Case.objects.get()
    send(alice, result(), result(parameters={"connections": 5}))
    assert {case.key for case in Case.objects.all()} == {
        known.key,
        build_case({"connections": 5}).key,
    }


def test_parameters_that_python_calls_equal_are_different_cases(
    world: World, alice: ApiClient
) -> None:
    cells = [{"tls": True}, {"tls": 1}, {"tls": "1"}]
    send(alice, *(result(parameters=cell) for cell in cells))
    assert sorted(Case.objects.values_list("key", flat=True)) == sorted(
        build_case(cell).key for cell in cells
    )


def test_the_same_post_twice_changes_nothing(world: World, alice: ApiClient) -> None:
    results = [result(), result(id="1"), result(commit="c" * 40, at=None)]
    assert read_counts(send(alice, *results)) == (3, 0)
    assert read_counts(send(alice, *reversed(results))) == (0, 3)
    assert Reading.objects.count() == 3
    assert sorted(Point.objects.values_list("trials", flat=True)) == [1, 1, 2, 2]


def test_equal_values_of_two_builds_count_twice_and_a_retry_once(
    world: World, alice: ApiClient
) -> None:
    first, second = (result(id=f"build-{number}", at=None) for number in (1, 2))
    assert read_counts(send(alice, first)) == (1, 0)
    assert read_counts(send(alice, second)) == (1, 0)
    assert read_counts(send(alice, first)) == (0, 1), "the client saw no answer, and sent it again"
    assert Point.objects.get(series__metric__key="requests.rate").trials == 2


@pytest.mark.parametrize("given", [{}, {"id": ""}])
def test_a_result_without_an_id_is_refused_with_a_fix(
    world: World, alice: ApiClient, given: dict[str, Any]
) -> None:
    without = {name: value for name, value in result().items() if name != "id"} | given
    answer = send(alice, result(), without)
    assert (answer.status_code, answer.json()["field"]) == (422, "results[1].id")
    assert "give each result an id, such as" in answer.json()["detail"]
    assert not Reading.objects.exists()


def test_an_id_identifies_a_result_within_case_host_and_commit(
    world: World, alice: ApiClient
) -> None:
    results = [
        result(id="7"),
        result(id="7", host="ci-8"),
        result(id="7", parameters={"connections": 8}),
        result(id="7", commit="c" * 40),
    ]
    assert read_counts(send(alice, *results)) == (4, 0)
    assert read_counts(send(alice, *results)) == (0, 4)
    assert read_counts(send(alice, result(id="7"), result(id="7"))) == (0, 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metrics": {"requests.rate": 1.0}}, "metrics (latency.p50, requests.rate)"),
        ({"validity": "suspect", "reasons": ["noise"]}, "validity (valid)"),
        ({"at": "2026-11-20T09:00:00Z"}, "time (2026-11-20T08:00:00+00:00)"),
        ({"note": "other"}, "note"),
    ],
)
def test_an_id_with_other_content_is_refused_and_nothing_stored(
    world: World, alice: ApiClient, changes: dict[str, Any], words: str
) -> None:
    new, other = result(id="8"), result(id="7", **changes)
    answer = send(alice, new, result(id="7"), other)
    assert answer.status_code == 409
    assert answer.json()["field"] == "results[2]"
    assert "results[1] has the id '7'" in answer.json()["detail"]
    assert not Reading.objects.exists()

    send(alice, result(id="7"))
    answer = send(alice, new, other, {**other, "host": "ci-8"}, other)
    assert answer.status_code == 409
    assert [each["field"] for each in answer.json()["errors"]] == ["results[1]", "results[3]"]
    assert words in answer.json()["detail"]
    assert Reading.objects.count() == 1


def test_a_result_without_a_time_is_recognised_by_its_id(world: World, alice: ApiClient) -> None:
    assert read_counts(send(alice, result(id="7", at=None))) == (1, 0)
    assert read_counts(send(alice, result(id="7", at=None))) == (0, 1)


def test_what_is_exported_and_sent_again_adds_nothing(world: World, alice: ApiClient) -> None:
    sent = [
        result(id="7", block="b", note="n", url="https://ci.example/1"),
        result(id="7", host="ci-8", validity="suspect", reasons=["noise"]),
        result(),
        result(at=None, parameters={"connections": 4, "text": "a"}),
    ]
    send(alice, *sent)
    run = world.measure_run(1000.0, 990.0)
    exported = [
        json.loads(line)
        for line in alice.get("results?benchmark=hello").getvalue().decode().splitlines()
    ]
    assert len(exported) == Reading.objects.count() > 4
    assert [each["id"] for each in exported].count("7") == 2
    trials = {str(each.pk) for each in Trial.objects.filter(job__run=run)}
    assert trials <= {each["id"] for each in exported}
    assert read_counts(send(alice, *exported)) == (0, len(exported))
    assert read_counts(send(alice, *({**each, "at": each["at"]} for each in exported))) == (
        0, len(exported),
    )  # fmt: skip


def test_a_result_sent_before_ids_belonged_to_a_case_is_recognised(
    world: World, alice: ApiClient
) -> None:
    send(alice, result(id="7"))
    reading = Reading.objects.get()
    earlier = _derive_result_id(reading.commit_id, f"id\0{reading.case.benchmark_id}\x007")
    Reading.objects.all().delete()
    reading.pk = earlier
    reading.save(force_insert=True)
    assert read_counts(send(alice, result(id="7"))) == (0, 1)
    assert read_counts(send(alice, result(id="7", host="ci-8"))) == (1, 0)


def test_an_id_of_another_team_has_no_effect(
    world: World, alice: ApiClient, mallory: ApiClient
) -> None:
    send(alice, result())
    theirs = str(Reading.objects.get().pk)
    send(alice, result(id=theirs, host="ci-8"))
    assert Reading.objects.count() == 2


def test_custom_metrics_of_a_team_are_limited_before_anything_is_made(
    world: World, alice: ApiClient, settings: Any
) -> None:
    settings.MAX_CUSTOM_METRICS = 3
    names = [f"script.m{number}_s" for number in range(5)]
    assert read_counts(send(alice, result(metrics=dict.fromkeys(names[:2], 1.0)))) == (1, 0)
    before = _last_metric_id()
    for _ in range(3):
        answer = send(alice, result(host="new", metrics=dict.fromkeys(names[1:4], 1.0)))
        assert answer.status_code == 409
        assert (
            "this would add 2 custom metrics; a team may have 3, of which 1"
            in (answer.json()["detail"])
        )
    many = [result(metrics={f"script.n{n}_{k}_s": 1.0 for k in range(90)}) for n in range(100)]
    assert send(alice, *many).status_code == 409
    assert _last_metric_id() == before
    assert not Host.objects.filter(name="new").exists()
    assert read_counts(send(alice, result(metrics=dict.fromkeys(names[:3], 2.0)))) == (1, 0)
    assert read_counts(send(alice, result(metrics={"requests.rate": 3.0}))) == (1, 0)


def test_unused_custom_metrics_are_removed_for_new_ones(
    world: World, alice: ApiClient, settings: Any
) -> None:
    settings.MAX_CUSTOM_METRICS = 3
    kept, gone, refused, new = (f"script.{name}_s" for name in ("kept", "gone", "refused", "new"))
    send(alice, result(id="1", metrics={kept: 1.0}))
    send(alice, result(metrics={gone: 1.0}))
    send(alice, result(id="2", metrics={kept: 2.0, gone: 3.0}))
    assert send(alice, result(id="1", metrics={refused: 1.0})).status_code == 409
    assert Metric.objects.filter(team__isnull=False).count() == 3
    Point.objects.filter(series__metric__key=gone).delete()
    Reading.objects.exclude(provenance__id__in=["1", "2"]).delete()

    recent = send(alice, result(metrics={new: 1.0}))
    assert recent.status_code == 409, "results of recent metrics may be about to be stored"
    Metric.objects.update(created_at=Now() - UNUSED_FOR)
    assert read_counts(send(alice, result(metrics={new: 1.0}))) == (1, 0)
    assert set(Metric.objects.filter(team__isnull=False).values_list("key", flat=True)) == {
        kept, new,
    }  # fmt: skip
    assert read_counts(send(alice, result(metrics={gone: 2.0}))) == (1, 0)
    assert send(alice, result(metrics={refused: 2.0})).status_code == 409
    assert read_counts(send(alice, result(id="2", metrics={kept: 2.0, gone: 3.0}))) == (0, 1)
    assert send(alice, result(id="2", metrics={kept: 2.0, gone: 4.0})).status_code == 409


def test_custom_metrics_of_a_team_do_not_count_for_another(
    world: World, alice: ApiClient, settings: Any
) -> None:
    settings.MAX_CUSTOM_METRICS = 1
    other = Team.objects.create(slug="other", name="Other")
    assert store_metrics(other.pk, ["script.upload_s"])
    assert read_counts(send(alice, result(metrics={"script.upload_s": 1.0}))) == (1, 0)
    assert Metric.objects.filter(key="script.upload_s").count() == 2
    assert Point.objects.get().series.metric.team != other


def _last_metric_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM results_metric_id_seq")
        return int(cursor.fetchone()[0])


def test_invalid_results_are_stored_and_not_counted(world: World, alice: ApiClient) -> None:
    bad = result(validity="invalid", reasons=["the disk was full"], metrics={"requests.rate": 1})
    unsure = result(validity="suspect", reasons=["noisy"], metrics={"requests.rate": 2})
    send(alice, result(metrics={"requests.rate": 3}), bad, unsure)
    point = Point.objects.get()
    assert (point.trials, point.suspect, point.invalid) == (2, 1, 1)
    assert sorted(point.values) == [2.0, 3.0]


def test_zero_and_negative_values_are_accepted(world: World, alice: ApiClient) -> None:
    values = [0.0, -1.0, 5.0, 1e100, 5e-324]
    send(alice, *(result(metrics={"script.left_count": value}) for value in values))
    assert Point.objects.get().trials == 5


def test_custom_metrics_are_accepted(world: World, alice: ApiClient) -> None:
    send(alice, result(metrics={"script.upload_s": 0.5}))
    assert Point.objects.get().series.metric.key == "script.upload_s"


def test_a_result_may_name_a_host_of_the_team(world: World, alice: ApiClient) -> None:
    send(alice, result(host="here"))
    assert Reading.objects.get().host.transport == "local"


def test_an_external_host_is_never_offered_for_runs(world: World, alice: ApiClient) -> None:
    send(alice, result(profile="laptop"))
    host = Host.objects.get(name="ci-7")
    assert (host.transport, host.state, host.profile.slug) == ("external", "external", "laptop")
    member = world.personas.alice
    assert not load_own_hosts(member).filter(pk=host.pk).exists()
    assert "ci-7" not in {each.value for each in load_choices(member)}
    refused = alice.post("runs", world.run_body(hosts=["ci-7"]))
    assert refused.status_code == 422
    assert alice.post(f"hosts/{host.pk}/release").status_code in (404, 409)


REPORT = """\
version: 1
title: Fast
benchmark: server/hello
tables:
  - rows: [connections]
    columns: [{metric: requests.rate}]
"""


def test_uploaded_results_are_in_reports(world: World, alice: ApiClient) -> None:
    rates = [{"requests.rate": rate} for rate in (1000, 1010, 990)]
    send(alice, *(result(metrics=each) for each in rates))
    bad = result(metrics={"requests.rate": 1}, validity="invalid", reasons=["no network"])
    send(alice, bad)
    shown = alice.post("reports/preview", {"source": REPORT}).json()
    [row] = shown["tables"][0]["rows"]
    [cell] = row["cells"]
    assert cell["value"] == pytest.approx(1000, rel=0.01)
    assert (cell["trials"], cell["excluded"]) == (3, 1)


def test_uploaded_results_have_a_history(world: World, alice: ApiClient) -> None:
    send(alice, result(), result(commit="c" * 40, metrics={"requests.rate": 900}))
    case = Case.objects.get()
    history = alice.get(
        "history", benchmark="hello", case=case.key, host="ci-7", metric="requests.rate"
    ).json()
    values = [point["value"] for point in history["points"]]
    assert values == pytest.approx([1000.0, 900.0])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"metrics": {"foo": 1.0}}, "results[1].metrics.foo"),
    ({"metrics": {}}, "results[1].metrics"),
    ({"metrics": {"requests.rate": "fast"}}, "results[1].metrics.requests.rate"),
    ({"metrics": {"requests.rate": float("nan")}}, "results[1].metrics.requests.rate"),
    ({"metrics": {"requests.rate": float("inf")}}, "results[1].metrics.requests.rate"),
    ({"metrics": {"requests.rate": None}}, "results[1].metrics.requests.rate"),
    ({"metrics": {"requests.rate": True}}, "results[1].metrics.requests.rate"),
    ({"metrics": {"requests.rate": 1e300}}, "results[1].metrics.requests.rate"),
    ({"commit": "abc"}, "results[1].commit"),
    ({"commit": "A" * 40}, "results[1].commit"),
    ({"host": "Not A Host"}, "results[1].host"),
    ({"benchmark": "other"}, "results[1].benchmark"),
    ({"project": "other"}, "results[1].benchmark"),
    ({"parameters": {"a": [1]}}, "results[1].parameters.a"),
    ({"parameters": {"a": float("nan")}}, "results[1].parameters.a"),
    ({"parameters": {"A b": 1}}, "results[1].parameters.A b"),
    ({"at": "yesterday"}, "results[1].at"),
    ({"at": "2026-11-20T08:00:00"}, "results[1].at"),
    ({"validity": "good"}, "results[1].validity"),
    ({"validity": "suspect"}, "results[1]"),
    ({"block": ""}, "results[1].block"),
    ({"id": "x" * 201}, "results[1].id"),
    ({"id": None}, "results[1].id"),
    ({"url": "javascript:alert(1)"}, "results[1].url"),
    ({"note": "a\0b"}, "results[1].note"),
    ({"more": 1}, "results[1].more"),
    ({"commit_facts": {"parents": ["x"]}}, "results[1].commit_facts.parents[0]"),
]


@pytest.mark.parametrize(("wrong", "field"), WRONG)
def test_one_invalid_result_refuses_the_whole_request(
    world: World, alice: ApiClient, wrong: dict[str, Any], field: str
) -> None:
    answer = send(alice, result(), result(**wrong))
    assert answer.status_code == 422, answer.content
    assert answer.json()["field"].startswith(field)
    assert field in answer.json()["detail"]
    assert not Reading.objects.exists()


def test_all_invalid_fields_are_named(world: World, alice: ApiClient) -> None:
    answer = send(alice, result(metrics={"foo": 1}), result(commit="x"), result(benchmark="B"))
    fields = [each["field"] for each in answer.json()["errors"]]
    assert fields == ["results[0].metrics.foo", "results[1].commit", "results[2].benchmark"]
    answer = send(alice, result(benchmark="one"), result(), result(benchmark="two"))
    fields = [each["field"] for each in answer.json()["errors"]]
    assert fields == ["results[0].benchmark", "results[2].benchmark"]


@pytest.mark.parametrize("results", [[], [result()] * 1001])
def test_a_request_has_one_to_a_thousand_results(
    world: World, alice: ApiClient, results: Any
) -> None:
    answer = send(alice, *results)
    assert (answer.status_code, answer.json()["field"]) == (422, "results")


def test_a_viewer_cannot_upload_results(world: World, bob: ApiClient) -> None:
    assert send(bob, result()).status_code == 403
    assert not Host.objects.filter(name="ci-7").exists()


def test_the_benchmark_of_another_team_is_not_found(
    world: World, mallory: ApiClient, alice: ApiClient
) -> None:
    send(alice, result())
    assert send(mallory, result()).json()["field"] == "results[0].benchmark"
    assert Reading.objects.count() == 1


def test_a_thousand_results_are_accepted(world: World, alice: ApiClient) -> None:
    results = [result(parameters={"connections": 1 + n % 100}, id=str(n)) for n in range(1000)]
    assert read_counts(send(alice, *results)) == (1000, 0)
    assert set(Point.objects.values_list("trials", flat=True)) == {10}


def test_a_point_keeps_the_first_values_and_the_sums_of_all(world: World, alice: ApiClient) -> None:
    for part in range(2):
        results = [result(id=f"{part}-{n}", metrics={"requests.rate": 5}) for n in range(200)]
        assert read_counts(send(alice, *results)) == (200, 0)
    point = Point.objects.get()
    assert (point.trials, len(point.values), len(point.blocks)) == (400, 256, 256)
    assert point.mean == pytest.approx(5)


@pytest.mark.django_db(transaction=True)
def test_concurrent_uploads_to_a_new_commit_lose_and_duplicate_nothing(
    world: World, alice: ApiClient
) -> None:
    def post(number: int) -> tuple[int, int]:
        order = 1 if number % 2 else -1
        results = [
            result(id=f"{number}-{n}", host=f"ci-{n % 3}", parameters={"connections": n})
            for n in range(20)
        ]
        shared = [result(id=f"same-{n}", parameters={"size": n}) for n in range(20)]
        try:
            return read_counts(send(alice, *(results + shared)[::order]))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(post, range(16)))
    assert sum(accepted for accepted, _ in answers) == 16 * 20 + 20
    assert sum(repeated for _, repeated in answers) == 15 * 20
    assert Reading.objects.count() == 340
    assert Commit.objects.filter(sha=SHA).count() == 1
    assert Host.objects.filter(transport="external").count() == 4
    assert HardwareProfile.objects.filter(slug="external").count() == 1
    points = Point.objects.filter(series__metric__key="requests.rate")
    assert sorted(points.values_list("trials", flat=True)) == [1] * 20 + [16] * 20
    assert all(len(point.values) == point.trials for point in points)


@pytest.mark.django_db(transaction=True)
def test_rows_deleted_meanwhile_are_created_again(world: World, alice: ApiClient) -> None:
    sent = result()
    send(alice, sent)
    Commit.objects.filter(sha=SHA).delete()
    Series.objects.all().delete()
    assert read_counts(send(alice, sent)) == (1, 0)
    assert Reading.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_new_commits_get_different_positions(world: World, alice: ApiClient) -> None:
    def post(number: int) -> tuple[int, int]:
        try:
            return read_counts(send(alice, result(commit=f"{number:040x}")))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(post, range(16)))
    places = list(Commit.objects.exclude(position=None).values_list("position", flat=True))
    assert len(set(places)) == len(places)


def test_results_go_to_the_benchmark_that_has_the_name_now(world: World, alice: ApiClient) -> None:
    assert read_counts(send(alice, result())) == (1, 0)
    deleted = world.benchmark.pk
    assert alice.delete("benchmarks/server/hello").status_code == 204
    refused = send(alice, result())
    assert refused.status_code == 422
    assert "has no benchmark hello" in refused.json()["detail"]

    source = factories.DEFINITION
    assert alice.post("benchmarks/server/hello/definitions", {"source": source}).status_code == 201
    assert read_counts(send(alice, result())) == (1, 0)

    counts = {
        pk: Reading.objects.filter(case__benchmark=pk).count()
        for pk in Case.objects.values_list("benchmark", flat=True)
    }
    [now] = counts.keys() - {deleted}
    assert counts == {deleted: 1, now: 1}


def test_a_draft_gets_no_results(world: World, alice: ApiClient) -> None:
    Benchmark.objects.filter(pk=world.benchmark.pk).update(is_draft=True)
    refused = send(alice, result())
    assert refused.status_code == 422
    assert "hello is a draft: save the benchmark" in refused.json()["detail"]
    assert not Reading.objects.exists()
