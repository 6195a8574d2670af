"""A channel that is created through the API delivers, and lists each delivery."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from orchestrator.accounts.models import AuditEntry
from orchestrator.alerts.deliveries import deliver, load_due_delivery_ids
from orchestrator.alerts.models import Channel, Delivery
from orchestrator.core.clock import utc_now
from orchestrator.runs.models import IdempotencyKey
from tests.api.conftest import ApiClient
from tests.support.http_servers import receiving


@pytest.fixture(autouse=True)
def _own_networks(settings: Any) -> None:
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.0/8"]
    settings.EMAIL_HOST = ""


def build_channel_body(**changes: Any) -> dict[str, Any]:
    given = {"name": "Our CI", "kind": "webhook", "events": ["run.ended"]}
    return {**given, "target": "http://127.0.0.1:9/hook-s3cret", **changes}


def test_a_channel_signs_delivers_and_redelivers(alice: Any) -> None:
    with receiving(answers=[500]) as receiver:
        answer = alice.post("channels", build_channel_body(target=f"{receiver.url}/hook-s3cret"))
        made = answer.json()
        assert (answer.status_code, answer["Location"]) == (201, made["url"])
        tested = alice.post(f"channels/{made['id']}/test")
        path = f"deliveries/{tested.json()['id']}"
        assert tested["Location"] == f"/api/v1/{path}"
        assert (tested.json()["state"], tested.json()["tries"]) == ("waiting", [])
        [due] = load_due_delivery_ids(utc_now())
        deliver(due, utc_now())

        failing = alice.get(path).json()
        assert (failing["last_try"]["status"], failing["next_at"] is None) == (500, False)
        assert (
            alice.get(f"channels/{made['id']}").json()["problem"]
            == "the server answered with status 500"
        )
        assert alice.post(f"{path}/redeliver").status_code == 409
        Delivery.objects.update(state="failed")
        assert alice.post(f"{path}/redeliver").status_code == 202
        deliver(due, utc_now())

    first, second = receiver.got
    assert first.path == "/hook-s3cret"
    assert first.headers["pitwall-delivery"] == second.headers["pitwall-delivery"] == str(due)
    stamp, _, given = second.headers["pitwall-signature"].partition(",v1=")
    signed = stamp.removeprefix("t=").encode() + b"." + second.body
    assert given == hmac.new(made["secret"].encode(), signed, hashlib.sha256).hexdigest()
    delivery = alice.get(path).json()
    assert (delivery["state"], delivery["tried"], delivery["next_at"]) == ("delivered", 2, None)
    assert [each["error"] for each in delivery["tries"]] == [
        "the server answered with status 500",
        None,
    ]
    assert delivery["body"] == second.body.decode()
    assert delivery["events"][0]["title"] == second.data["title"]
    assert delivery["events"][0]["event"] == "test"
    assert AuditEntry.objects.filter(action="delivery.replayed").count() == 1


def test_the_secret_of_a_channel_is_shown_once_and_its_address_never(alice: Any, bob: Any) -> None:
    first = alice.post("channels", build_channel_body(), key="k")
    made = first.json()
    again = alice.post("channels", build_channel_body(), key="k")
    alice.post(f"channels/{made['id']}/test")
    assert made["secret"].startswith("pwhook_")
    assert again.json() == {**made, "secret": None}
    looks = [bob.get(path) for path in ("channels", f"channels/{made['id']}")]
    shown = looks[1].json()
    assert (looks[0].json()["channels"], made.keys() - shown.keys()) == ([shown], {"secret"})
    looks.append(bob.get(f"channels/{made['id']}/deliveries"))
    looks.append(alice.patch(f"channels/{made['id']}", {"enabled": True}))
    assert "hook-s3cret" not in first.content.decode()
    assert all("s3cret" not in each.content.decode() for each in looks)
    kept = json.dumps(list(IdempotencyKey.objects.values_list("answer", flat=True)))
    assert made["id"] in kept
    assert made["secret"] not in kept


def test_the_secret_of_a_token_is_not_stored(alice: Any) -> None:
    body = {"name": "ci", "scopes": ["read"]}
    made, again = (alice.post("tokens", body, key="k").json() for _ in range(2))
    assert ApiClient(secret=made["secret"]).get("runs").status_code == 200
    assert again == {**made, "secret": None}
    assert made["secret"] not in json.dumps(IdempotencyKey.objects.get().answer)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": " "}, "name"),
        ({"events": []}, "events"),
        ({"events": ["test"]}, "events[0]"),
        ({"target": "nowhere"}, "target"),
        ({"target": "http://10.0.0.1/"}, "target"),
        ({"digest": "daily"}, "digest"),
        ({"kind": "fax"}, "kind"),
        ({"kind": "email", "target": "a@example.org"}, "kind"),
    ],
)
def test_an_invalid_channel_is_refused_with_the_field(
    alice: Any, changes: dict[str, Any], field: str
) -> None:
    answer = alice.post("channels", build_channel_body(**changes))
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert not Channel.objects.exists()


def test_a_channel_is_disabled_and_deleted_with_its_deliveries(alice: Any) -> None:
    channel = f"channels/{alice.post('channels', build_channel_body()).json()['id']}"
    assert alice.post("channels", build_channel_body()).status_code == 409
    sent = [alice.post(f"{channel}/test").json()["id"] for _ in range(3)]
    Delivery.objects.filter(pk=sent[0]).update(state="failed")
    page = alice.get(f"{channel}/deliveries", limit=2).json()
    rest = alice.get(f"{channel}/deliveries", limit=2, cursor=page["next"]).json()
    listed = [each["id"] for each in (*page["deliveries"], *rest["deliveries"])]
    assert (listed, rest["next"]) == (sent[::-1], None)
    failed = alice.get(f"{channel}/deliveries", state="failed").json()["deliveries"]
    assert [each["id"] for each in failed] == sent[:1]

    assert alice.patch(channel, {"enabled": False}).json()["enabled"] is False
    assert load_due_delivery_ids(utc_now()) == []
    assert alice.post(f"{channel}/test").status_code == 409
    assert alice.delete(channel).status_code == 204
    assert alice.get(f"deliveries/{sent[0]}").status_code == 404


def test_viewers_and_strangers_cannot_use_channels(alice: Any, bob: Any, mallory: Any) -> None:
    channel = f"channels/{alice.post('channels', build_channel_body()).json()['id']}"
    delivery = f"deliveries/{alice.post(f'{channel}/test').json()['id']}"
    Delivery.objects.update(state="failed")
    assert bob.post("channels", build_channel_body(name="mine")).status_code == 403
    assert mallory.get("channels").json()["channels"] == []
    for client, status in ((bob, 403), (mallory, 404)):
        assert client.patch(channel, {"enabled": False}).status_code == status
        assert client.delete(channel).status_code == status
        assert client.post(f"{channel}/test").status_code == status
        assert client.post(f"{delivery}/redeliver").status_code == status
    assert bob.get(delivery).status_code == 200
    for path in (channel, f"{channel}/deliveries", delivery):
        assert mallory.get(path).status_code == 404
    assert Channel.objects.get().enabled
    assert Delivery.objects.get().state == "failed"
