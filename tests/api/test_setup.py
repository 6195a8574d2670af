"""Projects, profiles, keys, hosts and published figures are set up through the API."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from orchestrator.dispatch.checkup import run_checks
from orchestrator.fleet.models import Credential, Host
from tests.support import factories
from tests.support.fetches import run_fetches
from tests.support.ssh_certificates import sign


def test_a_project_is_added_and_its_commits_are_listed(world, alice, bob, mallory):
    folder = world.repository.parent / "more"
    shas = factories.make_repository(folder, [{"a": "1"}, {"a": "2"}])
    wanted = {"slug": "more", "repository_url": str(folder)}
    assert bob.post("projects", wanted).status_code == 403
    made = alice.post("projects", wanted)
    assert (made.status_code, made["Location"]) == (201, "/api/v1/projects/more")
    assert alice.get("projects/more").json() == made.json()
    assert alice.post("projects", wanted).status_code == 409
    assert made.json()["fetch"]["state"] == "queued"
    assert bob.post("projects/more/fetch").status_code == 403
    assert alice.post("projects/more/fetch").json()["state"] == "queued"
    run_fetches()
    assert alice.get("projects/more").json()["fetch"]["state"] == "done"
    assert [each["project"] for each in alice.get("projects").json()["projects"]] == [
        "more",
        "server",
    ]
    page = alice.get("projects/more/commits", limit=1).json()
    rest = alice.get("projects/more/commits", cursor=page["next"]).json()
    assert {page["commits"][0]["commit"], rest["commits"][0]["commit"]} == set(shas)
    assert rest["next"] is None
    commits = alice.get("projects/more/commits", text="version 2").json()["commits"]
    assert [each["commit"] for each in commits] == [shas[1]]
    refs = alice.get("projects/more/refs").json()
    assert refs["branches"] == [{"branch": "main", "commit": shas[1]}]
    for path in ("", "/commits", "/refs"):
        assert mallory.get(f"projects/more{path}").status_code == 404
    assert mallory.post("projects/more/fetch").status_code == 404


def test_a_repository_that_cannot_be_read_is_corrected(world, alice, bob, mallory):
    wanted = {"slug": "more", "repository_url": str(world.repository) + "-wrong"}
    alice.post("projects", wanted)
    run_fetches()
    fetch = alice.get("projects/more").json()["fetch"]
    assert (fetch["state"], fetch["failures"]) == ("failed", 1)
    assert "git cannot read the repository" in fetch["error"]
    assert "-wrong" not in fetch["error"]
    right = {"repository_url": str(world.repository)}
    assert bob.patch("projects/more", right).status_code == 403
    assert mallory.patch("projects/more", right).status_code == 404
    assert alice.patch("projects/more", {"repository_url": "x"}).status_code == 422
    assert alice.patch("projects/more", right).json()["fetch"]["state"] == "queued"
    run_fetches()
    assert alice.get("projects/more").json()["fetch"]["state"] == "done"


def test_a_profile_is_made_and_changed(world, alice, bob, mallory):
    wanted = {"name": "T490s", "cores": 4, "price_per_hour": "0.12"}
    assert bob.put("profiles/t490s", wanted).status_code == 403
    assert alice.put("profiles/t490s", wanted).json()["price_per_hour"] == 0.12
    assert alice.put("profiles/t490s", {"name": "ThinkPad"}).json()["cores"] is None
    assert alice.get("profiles/any").json()["hosts"] == ["here"]
    assert len(bob.get("profiles").json()["profiles"]) == 2
    assert mallory.get("profiles/t490s").status_code == 404
    assert alice.put("profiles/T490S!", wanted).status_code == 422


def test_a_host_is_set_up_step_by_step(world, alice, bob, mallory):
    key = alice.post("credentials", {"name": "lab"}).json()
    assert key["public_key"].startswith("ssh-ed25519 ")
    assert "private" not in str(alice.get("credentials").json())
    assert (bob.get("credentials").status_code, bob.post("credentials", {"name": "x"}).status_code
            ) == (403, 403)  # fmt: skip
    address = f"credentials/{key['id']}/certificate"
    signed = {"certificate": sign(key["public_key"], "ci")}
    assert (bob.put(address, signed).status_code, mallory.put(address, signed).status_code) == (
        403, 404,
    )  # fmt: skip
    assert alice.put(address, {"certificate": "x"}).json()["field"] == "certificate"
    assert alice.put(address, signed).json()["certificate"]["principals"] == ["ci"]
    assert alice.put(address, {"certificate": ""}).json()["certificate"] is None
    wanted = {
        "name": "rack-1", "profile": "any", "address": "127.0.0.1", "port": 1, "login": "ci",
        "credential": key["id"],
    }  # fmt: skip
    assert bob.post("hosts", wanted).status_code == 403
    made = alice.post("hosts", wanted)
    assert (made.status_code, made.json()["state"]) == (201, "unconfirmed")
    detected = alice.post("hosts", {**wanted, "name": "rack-2", "profile": ""}).json()
    assert detected["profile"]["name"] == "rack-2, not detected yet"
    assert alice.post("hosts", {**wanted, "name": "rack-3", "profile": "none"}).status_code == 422
    assert alice.delete(f"hosts/{detected['id']}").status_code == 204
    assert len(alice.get("profiles").json()["profiles"]) == 1
    host = f"hosts/{made.json()['id']}"
    response = alice.post(f"{host}/checks")
    assert (response.status_code, response.json()["running"]) == (202, True)
    run_checks(Host.objects.get(name="rack-1").pk)
    checks = alice.get(f"{host}/checks").json()
    assert checks["running"] is False
    assert (checks["through"], checks["blocked"]) == (False, "reach")
    assert checks["steps"][0]["outcome"] == "failed"
    assert checks["steps"][0]["remedies"]

    moved = {name: wanted[name] for name in ("address", "login", "credential")} | {"port": 2}
    assert alice.put(f"{host}/ssh", moved).json()["blocked"] is None
    assert Host.objects.get(name="rack-1").port == 2
    pinned = alice.put(f"{host}/key", {"host_key": key["public_key"]})
    assert pinned.status_code == 200
    assert alice.put(f"{host}/key", {"host_key": "no key"}).status_code == 422
    for client, status in ((bob, 403), (mallory, 404)):
        assert client.post(f"{host}/checks").status_code == status
        assert client.put(f"{host}/ssh", moved).status_code == status
        assert client.delete(host).status_code == status
    assert alice.delete(host).status_code == 204
    assert not Host.objects.filter(name="rack-1").exists()
    assert Credential.objects.get().name == "lab"


@pytest.mark.parametrize("count", [2])
def test_reference_results_are_imported_read_and_removed(world, alice, bob, mallory, count):
    text = "suite,profile,metric,value\nhello,t490s,requests.rate,1000\nhello,m2,requests.rate,-\n"
    headers = {"Authorization": f"Bearer {alice.secret}"}
    path = "/api/v1/references?format=csv&source=report"
    for added in (count, 0):
        file = SimpleUploadedFile("figures.csv", text.encode())
        done = Client().post(path, {"file": file}, headers=headers).json()
        assert (done["rows"], done["unknown"], done["added"]) == (count, 1, added)
    reference = f"references/{done['reference']['id']}"
    assert alice.get("references").json()["references"] == [done["reference"]]
    figures = bob.get(f"{reference}/figures", words="t490s").json()["figures"]
    assert [(each["environment"], each["value"]) for each in figures] == [("t490s", 1000)]
    assert mallory.get(reference).status_code == 404
    assert (bob.delete(reference).status_code, alice.delete(reference).status_code) == (403, 204)
    assert alice.post("references/published", {"suite": "nothing"}).status_code == 404
