"""What a team uses and may use, and the refusal beyond it."""

from io import StringIO

from django.core.management import call_command

from tests.api.conftest import ApiClient
from tests.support.world import World


def test_a_quota_is_reported_and_refuses_the_next_host(
    world: World, alice: ApiClient, bob: ApiClient
):
    world.queue_run()
    call_command("quota", "red", "--hosts", "1", "--queued-minutes", "1", stdout=StringIO())
    quotas = bob.get("quotas").json()
    assert (quotas["own"], quotas["hosts"]) == (True, {"used": 1, "limit": 1})
    assert quotas["queue"]["limit_s"] == 60
    assert quotas["queue"]["used_s"] > 0
    assert quotas["storage"] == {"used_bytes": 0, "limit_bytes": 51_200 * 2**20}
    assert quotas["mirrors"]["limit_bytes"] == 51_200 * 2**20
    assert quotas["mirrors"]["used_bytes"] > 0
    key = alice.post("credentials", {"name": "lab key"}).json()["id"]
    new = {
        "name": "next", "profile": "any", "address": "192.0.2.9", "login": "pitwall",
        "credential": key,
    }  # fmt: skip
    refused = alice.post("hosts", new)
    assert refused.status_code == 409
    assert "may have 1 host and has 1; retire one" in refused.json()["detail"]
    call_command("quota", "red", "--hosts", "2", stdout=StringIO())
    assert alice.post("hosts", new).status_code == 201
    assert bob.get("quotas").json()["hosts"] == {"used": 2, "limit": 2}
