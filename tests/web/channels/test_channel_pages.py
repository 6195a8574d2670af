"""The pages of channels and their deliveries."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import AuditEntry
from orchestrator.alerts.deliveries import deliver, load_due_delivery_ids
from orchestrator.alerts.models import Channel, Delivery
from orchestrator.core.clock import utc_now
from tests.support.factories import Personas
from tests.support.html_pages import elements, get_text, shown_secret
from tests.support.http_servers import receiving

FIELDS = {"name": "Our CI", "kind": "webhook", "events": ["run.ended"], "digest": "immediate"}


@pytest.fixture(autouse=True)
def _own_networks(settings: Any) -> None:
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.0/8"]


def make(client: Client, **changes: Any) -> Any:
    data = {**FIELDS, "target": "http://127.0.0.1:9/hook-s3cret", **changes}
    return client.post(reverse("channels"), data)


def test_a_delivery_is_sent_shown_and_redelivered(personas: Personas, alice: Client) -> None:
    with receiving(answers=[500]) as receiver:
        make(alice, target=f"{receiver.url}/s3cret")
        channel = Channel.objects.get()
        tested = alice.post(reverse("channel-test", args=[channel.pk]))
        delivery = Delivery.objects.get()
        assert tested.headers["Location"] == reverse("delivery", args=[delivery.pk])
        [due] = load_due_delivery_ids(utc_now())
        deliver(due, utc_now())
        page = alice.get(tested.headers["Location"]).content.decode()
        assert "The server answered with status 500" in page
        assert f"Pitwall-Delivery: {delivery.pk}" in page
        assert "This channel works" in page
        assert "s3cret" not in page
        again = reverse("delivery-redeliver", args=[delivery.pk])
        assert alice.post(again).status_code == 409
        listed = alice.get(reverse("channels")).content.decode()
        assert "failing" in listed
        assert "A run has ended" in [get_text(cell) for cell in elements(listed, "td")]

        Delivery.objects.update(state="failed")
        alice.post(again)
        deliver(delivery.pk, utc_now())

    page = alice.get(reverse("channel", args=[channel.pk])).content.decode()
    assert "delivered" in page
    assert len(receiver.got) == 2
    assert AuditEntry.objects.filter(action="delivery.replayed").count() == 1


def test_the_secret_is_shown_once_and_the_address_never(personas: Personas, alice: Client) -> None:
    made = make(alice)
    secret = shown_secret(made)
    pages = [made, alice.get(reverse("channels"))]
    pages.append(alice.get(reverse("channel", args=[Channel.objects.get().pk])))

    assert secret
    assert all("hook-s3cret" not in page.content.decode() for page in pages)
    assert all(secret not in page.content.decode() for page in pages[1:])
    assert "no-store" in made.headers["Cache-Control"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("events", []),
        ("target", "nowhere"),
        ("target", "http://10.0.0.1/"),
        ("digest", "daily"),
        ("kind", "fax"),
    ],
)
def test_invalid_channels_are_refused(
    personas: Personas, alice: Client, field: str, value: Any
) -> None:
    assert make(alice, **{field: value}).status_code == 422
    assert not Channel.objects.exists()


def test_names_of_channels_are_unique(personas: Personas, alice: Client) -> None:
    make(alice)

    assert make(alice).status_code == 422
    assert Channel.objects.count() == 1


def test_viewers_read_channels_and_strangers_do_not(
    personas: Personas, alice: Client, bob: Client, mallory: Client
) -> None:
    make(alice)
    channel = Channel.objects.get()
    alice.post(reverse("channel-test", args=[channel.pk]))
    delivery = Delivery.objects.get()
    posts = [
        (reverse(f"channel-{action}", args=[channel.pk]), {"enabled": "false"})
        for action in ("enable", "delete", "test")
    ] + [(reverse("delivery-redeliver", args=[delivery.pk]), {})]
    looks = [reverse("channel", args=[channel.pk]), reverse("delivery", args=[delivery.pk])]

    assert make(bob, name="mine").status_code == 403
    for path, data in posts:
        assert bob.post(path, data).status_code == 403
        assert mallory.post(path, data).status_code == 404
    for path in looks:
        assert elements(bob.get(path), "main form") == []
        assert mallory.get(path).status_code == 404
    assert "Our CI" not in mallory.get(reverse("channels")).content.decode()
    assert Channel.objects.get().enabled


def test_a_channel_is_disabled_and_deleted(personas: Personas, alice: Client) -> None:
    make(alice)
    channel = Channel.objects.get()
    alice.post(reverse("channel-test", args=[channel.pk]))
    alice.post(reverse("channel-enable", args=[channel.pk]), {"enabled": "false"})
    assert load_due_delivery_ids(utc_now()) == []
    assert alice.post(reverse("channel-test", args=[channel.pk])).status_code == 409

    alice.post(reverse("channel-delete", args=[channel.pk]))
    assert not Delivery.objects.exists()
