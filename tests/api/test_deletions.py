"""Projects, benchmarks and profiles are deleted and restored through the API."""

from orchestrator.runs.models import Run
from tests.support.factories import DEFINITION


def test_a_benchmark_is_deleted_and_restored(world, alice, bob, mallory):
    world.measure_run(1000, 1001)
    path = "benchmarks/server/hello"
    dependents = bob.get(f"{path}/dependents").json()["dependents"]
    assert {"title": "Runs", "count": 1, "names": [], "is_capped": False} in dependents
    assert mallory.get(f"{path}/dependents").status_code == 404
    assert bob.delete(path).status_code == 403
    assert mallory.delete(path).status_code == 404
    assert alice.delete(path).status_code == 204
    assert alice.delete(path).status_code == 404
    assert bob.get(path).status_code == 404
    assert alice.get("benchmarks").json()["benchmarks"] == []
    assert alice.get("projects/server").json()["benchmarks"] == []
    assert alice.get("runs").json()["runs"] == []
    [gone] = alice.get("deleted").json()["benchmarks"]
    assert (gone["project"], gone["benchmark"], gone["deleted_by"]) == ("server", "hello", "alice")
    assert gone["removed_at"] > gone["deleted_at"]
    assert bob.get("deleted").status_code == 403
    assert mallory.get("deleted").json() == {"projects": [], "benchmarks": []}
    restore = f"deleted/benchmarks/{gone['id']}/restore"
    assert bob.post(restore).status_code == 403
    assert mallory.post(restore).status_code == 404
    assert alice.post(restore).json()["benchmark"] == "hello"
    assert alice.get(path).status_code == 200
    assert len(alice.get("runs").json()["runs"]) == Run.objects.count()
    assert alice.post(restore).status_code == 404


def test_a_project_is_deleted_and_restored(world, alice, bob, mallory):
    dependents = bob.get("projects/server/dependents").json()["dependents"]
    assert dependents[0] == {
        "title": "Benchmarks", "count": 1, "names": ["hello"], "is_capped": False,
    }  # fmt: skip
    assert bob.delete("projects/server").status_code == 403
    assert mallory.delete("projects/server").status_code == 404
    assert alice.delete("projects/server").status_code == 204
    for path in ("projects/server", "projects/server/commits", "benchmarks/server/hello"):
        assert alice.get(path).status_code == 404
    assert alice.post("runs", world.run_body()).status_code == 404
    [gone] = alice.get("deleted").json()["projects"]
    # Its name is free, and the restoration waits until it is free again.
    again = {"slug": "server", "repository_url": world.project.repository_url}
    assert alice.post("projects", again).status_code == 201
    restore = f"deleted/projects/{gone['id']}/restore"
    assert alice.post(restore).status_code == 409
    assert alice.delete("projects/server").status_code == 204
    assert mallory.post(restore).status_code == 404
    assert alice.post(restore).json()["benchmarks"] == ["hello"]


def test_a_project_is_renamed(world, alice, bob):
    assert bob.patch("projects/server", {"name": "Files"}).status_code == 403
    renamed = alice.patch("projects/server", {"name": "Files"}).json()
    assert (renamed["name"], renamed["fetch"]["state"]) == ("Files", "done")
    assert alice.patch("projects/server", {"slug": "files"}).status_code == 422


def test_a_former_case_is_hidden(world, alice, bob, mallory):
    both = DEFINITION.replace("connections: [4]", "connections: [4, 8]")
    definitions = "benchmarks/server/hello/definitions"
    alice.post(definitions, {"source": both})
    world.queue_run()
    cases = alice.get("benchmarks/server/hello").json()["cases"]
    assert [each["hidden"] for each in cases] == [False, False]
    path = f"benchmarks/server/hello/cases/{cases[1]['key']}/visibility"
    assert alice.put(path, {"hidden": True}).status_code == 409
    alice.post(definitions, {"source": DEFINITION})
    assert bob.put(path, {"hidden": True}).status_code == 403
    assert mallory.put(path, {"hidden": True}).status_code == 404
    assert alice.put(path, {"hidden": True}).json() == {**cases[1], "hidden": True}
    cases = alice.get("benchmarks/server/hello").json()["cases"]
    assert [each["hidden"] for each in cases] == [False, True]


def test_a_profile_is_deleted_if_no_host_has_it(world, alice, bob, mallory):
    used = alice.delete("profiles/any")
    assert used.status_code == 409
    assert "hosts have the profile any: here" in used.json()["detail"]
    alice.put("profiles/spare", {"name": "Spare"})
    assert bob.delete("profiles/spare").status_code == 403
    assert mallory.delete("profiles/spare").status_code == 404
    assert alice.delete("profiles/spare").status_code == 204
    assert alice.get("profiles/spare").status_code == 404
