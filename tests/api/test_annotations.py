"""Annotations of commits in histories, through the API."""

from pathlib import Path

import pytest

from tests.api.conftest import make_client
from tests.support.commit_lines import RATE, Line, make_line
from tests.support.factories import Personas


@pytest.fixture
def line(personas: Personas, settings: object, tmp_path: Path) -> Line:
    made = make_line(personas.alice, tmp_path / "origin", commits=6)
    made.measure({0: 1000, 1: 1000, 4: 1000})
    return made


def test_annotations_are_created_listed_edited_and_deleted(line: Line) -> None:
    alice = make_client(line.member)
    series = {"case": line.cases[0].key, "host": line.host.name, "metric": RATE}
    commit = line.commits[3].sha
    whole = alice.post("annotations", {"project": "server", "commit": commit, "text": "a"})
    of_benchmark = {"benchmark": "hello", "commit": commit[:9], "text": "b"}
    made = alice.post("annotations", of_benchmark | series).json()
    assert alice.post("annotations", of_benchmark).json()["scope"] == "benchmark"

    assert (whole.status_code, whole.json()["scope"], whole.json()["benchmark"]) == (
        201, "project", None,
    )  # fmt: skip
    assert (made["scope"], made["metric"], made["created_by"]) == ("series", RATE, "alice")
    listed = alice.get("annotations", benchmark="hello", limit=2).json()
    assert [each["scope"] for each in listed["annotations"]] == ["benchmark", "series"]
    rest = alice.get("annotations", benchmark="hello", cursor=listed["next"]).json()
    assert rest["annotations"] == [whole.json()]
    edited = alice.put(f"annotations/{made['id']}", {"text": "c"}).json()
    assert (edited["text"], edited["edited_by"]) == ("c", "alice")
    points = alice.get("history", benchmark="hello", **series).json()["points"]
    assert [len(point["annotations"]) for point in points] == [0, 0, 3]
    columns = alice.get("history", benchmark="hello", format="columns", **series).json()
    assert [each["at"] for each in columns["annotations"]] == [2, 2, 2]
    assert alice.delete(f"annotations/{made['id']}").status_code == 204
    assert alice.get(f"annotations/{made['id']}").status_code == 404


def test_an_annotation_without_exactly_one_scope_is_refused(line: Line, personas: Personas) -> None:
    alice, bob, mallory = map(make_client, (personas.alice, personas.bob, personas.mallory))
    note = {"project": "server", "commit": line.commits[0].sha, "text": "a"}
    for change in ({"text": ""}, {"host": "x"}, {"project": None}, {"case": "x"}):
        assert alice.post("annotations", note | change).status_code == 422, change
    assert alice.post("annotations", note | {"commit": "0" * 40}).status_code == 404
    assert bob.post("annotations", note).status_code == 403
    assert mallory.post("annotations", note).status_code == 404

    made = alice.post("annotations", note).json()
    assert bob.get("annotations").json()["annotations"] == [made]
    assert bob.delete(f"annotations/{made['id']}").status_code == 403
    assert mallory.get("annotations").json()["annotations"] == []
    assert mallory.put(f"annotations/{made['id']}", {"text": "b"}).status_code == 404
