"""Events of channels, their forms, and retries of failed deliveries."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import mail

from orchestrator.accounts.members import Member
from orchestrator.alerts import alert_rules, deliveries, events
from orchestrator.alerts.channel_service import (
    CreatedChannel,
    NewChannel,
    create_channel,
    replay,
    send_test,
    set_channel_enabled,
)
from orchestrator.alerts.channels.message import Line, Message
from orchestrator.alerts.channels.registry import FORMS
from orchestrator.alerts.deliveries import PAUSES_S, deliver, load_due_delivery_ids
from orchestrator.alerts.models import Alert, Channel, Delivery, Event
from orchestrator.alerts.services import acknowledge
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.dispatch import background_tasks
from orchestrator.dispatch.shares import TeamShares
from orchestrator.results.models import ChangePoint
from orchestrator.runs.models import Run
from tests.support.commit_lines import make_line
from tests.support.factories import (
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.http_servers import Receiver, receiving
from tests.support.trials import ERRORS, invalidate

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_settings(settings: Any, data_dir: Path) -> None:
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.0/8"]
    settings.EMAIL_HOST = "mail.example.org"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def make_channel(member: Member, target: str, kind: str = "webhook", **more: Any) -> CreatedChannel:
    fields = {"name": kind, "events": ("run.ended", "alert.raised"), **more}
    return create_channel(member=member, new=NewChannel(kind=kind, target=target, **fields))


def ended_run(member: Member, folder: Path) -> Run:
    project, shas = make_project(member, folder / "repository")
    make_definition(member, project)
    make_local_host(member)
    return finish_run(make_run(member, shas, rounds=6), [1000, 1001, 850])


def deliver_due(later: float = 0.0) -> None:
    """Run the ticks, some seconds later."""
    events.record_events(utc_now() + timedelta(seconds=later))
    now = utc_now() + timedelta(seconds=later)
    for delivery_id in load_due_delivery_ids(now):
        deliver(delivery_id, now)


def test_a_run_with_its_verdicts_is_delivered_once_and_signed(
    personas: Personas, tmp_path: Path, receiver: Receiver
) -> None:
    made = make_channel(personas.alice, receiver.url)
    run = ended_run(personas.alice, tmp_path)
    deliver_due()
    deliver_due()

    [got] = receiver.got
    assert got.data["event"] == got.headers["pitwall-event"] == "run.ended"
    assert got.data["run"]["id"] == str(run.pk)
    verdicts = [each["verdict"] for each in got.data["run"]["verdicts"]]
    assert verdicts[-1] == "regressed"
    [change] = got.data["run"]["verdicts"][-1]["changes"]
    assert (change["case"], change["host"]) == ("connections 4", "here")
    # A latency says it most.
    assert change["change"] == pytest.approx(1000 / 850 - 1, abs=0.02)
    time, _, given = got.headers["pitwall-signature"].partition(",v1=")
    signed = time.removeprefix("t=").encode() + b"." + got.body
    assert given == hmac.new(made.secret.encode(), signed, hashlib.sha256).hexdigest()
    delivery = Delivery.objects.get()
    assert got.headers["pitwall-delivery"] == str(delivery.pk)
    assert delivery.state == "delivered"
    assert len(delivery.log[0]["answer"]) < 1001


def test_secrets_of_channels_are_sealed(personas: Personas, receiver: Receiver) -> None:
    made = make_channel(personas.alice, f"{receiver.url}/T0KEN")
    send_test(member=personas.alice, channel_id=made.channel.pk)
    deliver_due()

    rows = [*Channel.objects.values_list(), *Delivery.objects.values_list()]
    stored = " ".join(str(bytes(v) if isinstance(v, memoryview) else v) for r in rows for v in r)
    assert receiver.got[0].path == "/T0KEN"
    assert "T0KEN" not in stored
    assert made.secret not in stored


def test_a_failed_delivery_is_retried_with_the_same_id(
    personas: Personas, receiver: Receiver
) -> None:
    receiver.answers = [500, 302]
    made = make_channel(personas.alice, receiver.url)
    send_test(member=personas.alice, channel_id=made.channel.pk)
    deliver_due()
    deliver_due()
    assert len(receiver.got) == 1
    deliver_due(later=PAUSES_S[0] + 1)
    deliver_due(later=PAUSES_S[0] + PAUSES_S[1] + 2)

    delivery = Delivery.objects.get()
    assert [each["status"] for each in delivery.log] == [500, 302, 200]
    assert "redirects are not followed" in delivery.log[1]["error"]
    assert delivery.state == "delivered"
    assert len({got.headers["pitwall-delivery"] for got in receiver.got}) == 1
    assert len({got.body for got in receiver.got}) == 1


def test_a_delivery_fails_after_the_last_retry_until_it_is_redelivered(
    personas: Personas, receiver: Receiver
) -> None:
    receiver.answers = [503] * (len(PAUSES_S) + 1)
    made = make_channel(personas.alice, receiver.url)
    delivery = send_test(member=personas.alice, channel_id=made.channel.pk)
    for _ in range(len(PAUSES_S)):
        deliver_due(later=PAUSES_S[-1] + 60)
        delivery.refresh_from_db()
        assert delivery.state == "waiting"
    with pytest.raises(ConflictError):
        replay(member=personas.alice, delivery_id=delivery.pk)
    deliver_due(later=PAUSES_S[-1] + 60)
    delivery.refresh_from_db()
    assert delivery.state == "failed"

    replay(member=personas.alice, delivery_id=delivery.pk)
    deliver_due()
    delivery.refresh_from_db()
    assert delivery.state == "delivered"
    assert len(delivery.log) == len(receiver.got) == len(PAUSES_S) + 2


def test_a_delivery_to_a_removed_receiver_fails_immediately(
    personas: Personas, receiver: Receiver
) -> None:
    receiver.answers = [410]
    made = make_channel(personas.alice, receiver.url)
    send_test(member=personas.alice, channel_id=made.channel.pk)
    deliver_due()

    assert Delivery.objects.get().state == "failed"


def test_a_claimed_delivery_is_left_to_its_worker(personas: Personas, receiver: Receiver) -> None:
    made = make_channel(personas.alice, receiver.url)
    delivery = send_test(member=personas.alice, channel_id=made.channel.pk)
    now = utc_now()

    assert deliveries._claim_delivery(delivery.pk, now) is not None
    assert not deliver(delivery.pk, now)
    assert receiver.got == []
    # That worker died: after a while somebody else takes it.
    assert deliver(delivery.pk, now + deliveries.LEASE)
    assert len(receiver.got) == 1


def test_internal_addresses_are_refused_unless_allowed(
    personas: Personas, receiver: Receiver, settings: Any
) -> None:
    made = make_channel(personas.alice, receiver.url)
    settings.ALLOWED_INTERNAL_NETWORKS = []
    send_test(member=personas.alice, channel_id=made.channel.pk)
    deliver_due()

    assert receiver.got == []
    assert "127.0.0.1" in Delivery.objects.get().log[0]["error"]
    with pytest.raises(InvalidRequestError, match="inside this network"):
        make_channel(personas.alice, "http://169.254.169.254/latest/meta-data", name="metadata")


def test_events_are_collected_into_a_digest(
    personas: Personas, tmp_path: Path, receiver: Receiver
) -> None:
    make_channel(personas.alice, receiver.url, "slack", digest="daily", events=("run.ended",))
    run = ended_run(personas.alice, tmp_path)
    deliver_due()
    finish_run(make_run(personas.alice, [v.commit.sha for v in run.variants.all()]), [900] * 3)
    deliver_due()
    assert receiver.got == []
    deliver_due(later=86_400)

    [got] = receiver.got
    assert got.data["text"].startswith("*2 events in Red*\n• Hello: ")
    assert Delivery.objects.get().events.count() == 2


def test_only_selected_events_of_enabled_channels_are_delivered(
    personas: Personas, tmp_path: Path, receiver: Receiver
) -> None:
    make_channel(personas.alice, receiver.url, events=("alert.raised",))
    off = make_channel(personas.alice, receiver.url, "slack").channel
    set_channel_enabled(member=personas.alice, channel_id=off.pk, enabled=False)
    make_channel(personas.mallory, receiver.url)
    ended_run(personas.alice, tmp_path)
    deliver_due()

    assert receiver.got == []
    assert not Event.objects.exists()


def test_alerts_and_their_changes_are_delivered(
    personas: Personas, tmp_path: Path, receiver: Receiver
) -> None:
    make_channel(personas.alice, receiver.url, events=("alert.raised", "alert.changed"))
    line = make_line(personas.alice, tmp_path / "origin", cases=1)
    line.project.confirm_changes = False
    line.project.save()
    line.step(until=40, at=25, change=-0.08)
    line.detect()
    alert = raise_confirmed_alert(line)
    deliver_due()
    acknowledge(member=personas.alice, alert_id=alert.pk, note="on it")
    deliver_due()
    deliver_due()

    assert [got.data["event"] for got in receiver.got] == ["alert.raised", "alert.changed"]
    first, second = (got.data["alert"] for got in receiver.got)
    assert first["change"] == pytest.approx(-0.08, abs=0.02)
    assert first["commit"] == line.commits[25].sha
    assert (second["state"], second["note"]) == ("acknowledged", "on it")


def raise_confirmed_alert(line: Any) -> Alert:
    """An alert as if a confirmation run had confirmed the change."""
    ChangePoint.objects.update(state="confirmed", recent=True)
    alert_rules.apply_alert_rules(utc_now())
    return Alert.objects.get()


def test_an_email_channel_sends_mail(personas: Personas, tmp_path: Path) -> None:
    make_channel(personas.alice, "ada@example.org, grace@example.org", "email")
    ended_run(personas.alice, tmp_path)
    deliver_due()

    [sent] = mail.outbox
    assert sent.to == ["ada@example.org", "grace@example.org"]
    assert sent.subject.startswith("Hello: ")
    assert "regressed" in sent.subject
    assert f"/runs/{Run.objects.get().pk}/" in sent.body
    assert sent.extra_headers["Message-ID"].startswith(f"<{Delivery.objects.get().pk}@")


def test_mails_above_the_quota_of_the_team_wait(
    personas: Personas, tmp_path: Path, settings: Any
) -> None:
    settings.EMAILS_AN_HOUR = 1
    make_channel(personas.alice, "ada@example.org, grace@example.org", "email")
    ended_run(personas.alice, tmp_path)
    deliver_due()
    delivery = Delivery.objects.get()
    assert mail.outbox == []
    assert delivery.state == "waiting"
    assert "may send 1 e-mails per hour" in delivery.log[0]["error"]


def test_an_email_channel_needs_a_mail_server_and_addresses(
    personas: Personas, settings: Any
) -> None:
    with pytest.raises(InvalidRequestError, match="not an e-mail address"):
        make_channel(personas.alice, "ada", "email")
    settings.EMAIL_HOST = ""
    with pytest.raises(InvalidRequestError, match="PITWALL_SMTP_HOST"):
        make_channel(personas.alice, "ada@example.org", "email")


def test_each_chat_gets_its_format_without_mentions() -> None:
    line = Line(text="p99 *up* <!channel> [x](y) in `a&b`", url="https://p.example/runs/1/")
    message = Message(title="Hello: regressed", lines=[line], data=[])
    bodies = {kind: json.loads(FORMS[kind](message).body) for kind in ("slack", "teams", "matrix")}

    assert "&lt;!channel&gt;" in bodies["slack"]["text"]
    assert "<https://p.example/runs/1/|open>" in bodies["slack"]["text"]
    card = bodies["teams"]["attachments"][0]["content"]
    assert card["body"][1]["text"].startswith(r"p99 \*up\* \<!channel\> \[x\](y) in \`a&b\`")
    assert card["actions"][0]["url"] == line.url
    assert "&lt;!channel&gt;" in bodies["matrix"]["html"]
    assert bodies["matrix"]["text"].endswith(line.url)


def test_old_deliveries_are_deleted(personas: Personas, receiver: Receiver) -> None:
    made = make_channel(personas.alice, receiver.url)
    send_test(member=personas.alice, channel_id=made.channel.pk)
    deliver_due()
    deliver_due(later=31 * 86_400)

    assert not Delivery.objects.exists()
    assert not Event.objects.exists()


def test_a_slow_receiver_leaves_threads_to_other_teams(
    personas: Personas, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_channel(personas.alice, receiver.url)
    ended_run(personas.alice, tmp_path)
    events.record_events(utc_now())
    delivery = made.channel.deliveries.get()
    shares = TeamShares(1)
    monkeypatch.setattr(background_tasks, "BACKGROUND_SHARES", shares)
    with shares.admit(personas.alice.team.pk):
        background_tasks.deliver(str(delivery.pk))
        assert receiver.got == []
    background_tasks.deliver(str(delivery.pk))
    assert len(receiver.got) == 1


def test_a_run_without_usable_data_is_announced_as_such(
    personas: Personas, tmp_path: Path, receiver: Receiver
) -> None:
    make_channel(personas.alice, receiver.url)
    invalidate(ended_run(personas.alice, tmp_path), ERRORS)
    deliver_due()

    [got] = receiver.got
    assert got.data["title"] == "Hello: the run has no usable data"
    assert got.data["text"].startswith("no usable data: all 18 trials are invalid: Answers of")
    assert (got.data["run"]["state"], got.data["run"]["verdicts"]) == ("no_data", [])


def test_a_contender_that_fails_is_announced_as_broken(
    personas: Personas, tmp_path: Path, receiver: Receiver
) -> None:
    make_channel(personas.alice, receiver.url)
    invalidate(ended_run(personas.alice, tmp_path), ERRORS, variant__position=1)
    deliver_due()

    [got] = receiver.got
    assert got.data["title"].startswith("Hello: broken")
    verdict = got.data["run"]["verdicts"][0]
    assert (verdict["verdict"], verdict["changes"][0]["verdict"]) == ("broken", "broken")
    assert verdict["counts"] == {"broken": 1}


def test_a_failed_run_is_announced_as_failed_even_with_a_verdict(
    personas: Personas, tmp_path: Path, receiver: Receiver
) -> None:
    make_channel(personas.alice, receiver.url)
    run = ended_run(personas.alice, tmp_path)
    Run.objects.filter(pk=run.pk).update(state="failed")
    deliver_due()

    [got] = receiver.got
    assert got.data["title"] == "Hello: the run failed"
    assert [each["verdict"] for each in got.data["run"]["verdicts"]][-1] == "regressed"
