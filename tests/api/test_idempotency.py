"""The same key makes one run, however often and however concurrently it is sent."""

import shutil
import threading

import pytest
from django.db import connection

from orchestrator.runs.models import IdempotencyKey, Run


def test_a_repeated_request_returns_the_same_run(world, alice):
    first = alice.post("runs", world.run_body(), key="build-7")
    again = alice.post("runs", world.run_body(), key="build-7")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert first["Location"] == again["Location"]
    assert Run.objects.count() == 1


def test_a_key_is_refused_for_another_request(world, alice):
    alice.post("runs", world.run_body(), key="build-7")
    other = alice.post("runs", world.run_body(rounds=9), key="build-7")
    assert other.status_code == 409
    assert "build-7" in other.json()["detail"]
    assert Run.objects.count() == 1


def test_another_key_creates_another_run(world, alice):
    alice.post("runs", world.run_body(), key="build-7")
    assert alice.post("runs", world.run_body(), key="build-8").status_code == 201
    assert alice.post("runs", world.run_body()).status_code == 201
    assert Run.objects.count() == 3


def test_a_repeat_does_not_need_the_repository(world, alice):
    wanted = world.run_body(baseline="main~1", contenders=["main"])
    first = alice.post("runs", wanted, key="build-7")
    shutil.rmtree(world.repository)
    again = alice.post("runs", wanted, key="build-7")
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    assert alice.post("runs", wanted, key="build-8").status_code == 422


def test_a_refused_request_does_not_use_up_its_key(world, alice):
    assert alice.post("runs", world.run_body(hosts=["nowhere"]), key="k").status_code == 422
    assert alice.post("runs", world.run_body(), key="k").status_code == 201


def test_keys_of_two_teams_are_independent(world, alice, mallory):
    alice.post("runs", world.run_body(), key="build-7")
    assert mallory.post("runs", world.run_body(), key="build-7").status_code == 404
    assert IdempotencyKey.objects.get().team == world.personas.alice.team


@pytest.mark.parametrize("key", ["x" * 201, "tab\there"])
def test_an_invalid_key_is_refused(world, alice, key):
    answer = alice.post("runs", world.run_body(), key=key)
    assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key")


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_with_one_key_create_one_run(world, alice):
    answers, together = [], threading.Barrier(6)

    def send():
        together.wait()
        try:
            answers.append(alice.post("runs", world.run_body(), key="build-7"))
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert Run.objects.count() == 1
