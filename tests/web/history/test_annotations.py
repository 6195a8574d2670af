"""Annotations of commits: members write them, and the team reads them on every line that shows
them."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Commit
from orchestrator.results.models import Annotation, Point, Series
from tests.support.html_pages import get_text
from tests.support.world import World


def _series(metric: str = "requests.rate") -> Series:
    return Series.objects.get(metric__key=metric)


def _write(client: Client, world: World, text: str, scope: str = "series", place: int = 1) -> Any:
    address = reverse("annotation-new", args=[_series().pk, world.shas[place][:10]])
    return client.post(address, {"text": text, "scope": scope, "back": "/history/?x=1"})


def _notes(client: Client, metric: str = "requests.rate") -> list[tuple[int, str]]:
    notes = client.get(reverse("history-data", args=[_series(metric).pk])).json()["annotations"]
    return [(each["at"], each["text"]) for each in notes]


def test_an_annotation_is_on_the_chart_in_the_table_and_at_the_point(
    world: World, alice: Client, bob: Client
) -> None:
    assert _write(alice, world, "New <b>kernel</b>").url == "/history/?x=1"
    page = bob.get(reverse("history"), {"benchmark": "server/hello"}).content.decode()
    point = bob.get(reverse("history-point", args=[_series().pk, world.shas[1][:10]]))

    assert _notes(bob) == [(1, "New <b>kernel</b>")]
    assert page.count("New &lt;b&gt;kernel&lt;/b&gt;") == 2
    assert "New &lt;b&gt;kernel" in point.content.decode()
    assert "Add an annotation" not in point.content.decode()
    assert reverse("annotation-edit", args=[Annotation.objects.get().pk]) not in page


@pytest.mark.parametrize(("scope", "elsewhere"), [("series", 0), ("case", 1), ("project", 1)])
def test_an_annotation_is_shown_only_within_its_scope(
    world: World, alice: Client, scope: str, elsewhere: int
) -> None:
    _write(alice, world, "New kernel", scope)
    assert len(_notes(alice)) == 1
    assert len(_notes(alice, "latency.p99")) == elsewhere


def test_an_annotation_at_an_unmeasured_commit_is_shown_at_the_next_one(
    world: World, alice: Client
) -> None:
    _write(alice, world, "New kernel", "project")
    _write(alice, world, "And gone", "project", place=2)
    Point.objects.filter(commit__sha=world.shas[1], series=_series()).delete()
    Point.objects.filter(commit__sha=world.shas[2], series__metric__key="latency.p99").delete()

    assert _notes(alice) == [(1, "New kernel"), (1, "And gone")]
    assert _notes(alice, "latency.p99") == [(1, "New kernel")]
    point = alice.get(reverse("history-point", args=[_series().pk, world.shas[2][:10]]))
    assert f"written at {world.shas[1][:10]}" in get_text(point)


def test_members_edit_and_delete_viewers_read_and_strangers_see_nothing(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    assert _write(bob, world, "x").status_code == 403
    assert _write(mallory, world, "x").status_code == 404
    assert _write(alice, world, "  ").status_code == 400
    assert _write(alice, world, "x", scope="all").status_code == 400
    _write(alice, world, "New kernel")
    (note,) = Annotation.objects.all()
    for page, answers in (("annotation-edit", (403, 404, 302)), ("annotation-delete", (403, 404))):
        address = reverse(page, args=[note.pk])
        for client, status in zip((bob, mallory, alice), answers, strict=False):
            assert client.post(address, {"text": "Newer kernel"}).status_code == status

    note.refresh_from_db()
    assert (note.text, note.edited_by) == ("Newer kernel", world.alice.user)
    # The cached page is rendered again.
    address = reverse("history-data", args=[_series().pk])
    kept = alice.get(address, headers={"if-none-match": '"old"'})
    alice.post(reverse("annotation-delete", args=[note.pk]))
    anew = alice.get(address, headers={"if-none-match": kept.headers["ETag"]})
    assert (len(kept.json()["annotations"]), anew.json()["annotations"]) == (1, [])


def test_the_database_requires_exactly_one_scope(world: World) -> None:
    series, commit = _series(), Commit.objects.get(sha=world.shas[0])
    with pytest.raises(IntegrityError, match="annotation_of_one_thing"), transaction.atomic():
        Annotation.objects.create(
            project=commit.project, commit=commit, text="x", created_at=commit.committed_at,
            series=series, case=series.case,
        )  # fmt: skip
