import pytest

from orchestrator.core.errors import HostError, InvalidRequestError, NotFoundError, UnreachableError
from orchestrator.transport.base import Transport
from orchestrator.transport.fake import Call, FakeTransport, build_success


def test_fake_transport_returns_responses_in_order_and_repeats_the_last() -> None:
    fake = FakeTransport()
    fake.answer(
        ["agent", "status"], build_success(b"1"), UnreachableError("gone"), build_success(b"2")
    )
    assert fake.run(["agent", "status", "j-1"], timeout_s=1).stdout == b"1"
    with pytest.raises(UnreachableError, match="gone"):
        fake.run(["agent", "status"], timeout_s=1)
    assert [fake.run(["agent", "status"], timeout_s=1).stdout for _ in range(2)] == [b"2", b"2"]


def test_fake_transport_prefers_the_latest_response() -> None:
    fake = FakeTransport()
    fake.answer([], build_success(b"any"))
    fake.answer(["agent"], build_success(b"agent"))
    assert fake.run(["agent"], timeout_s=1).stdout == b"agent"
    assert fake.run(["other"], timeout_s=1).stdout == b"any"


def test_fake_transport_fails_for_a_command_without_a_response() -> None:
    with pytest.raises(AssertionError, match="no answer was given"):
        FakeTransport().run(["agent"], timeout_s=1)


def test_fake_transport_keeps_files_and_calls() -> None:
    with FakeTransport() as fake:
        transport: Transport = fake
        transport.put(b"x", "a/b", mode=0o600)
        assert transport.get("a/b", limit=1) == b"x"
    assert fake.modes == {"a/b": 0o600}
    assert fake.calls == [Call(verb="put", what=("a/b",)), Call(verb="get", what=("a/b",))]
    assert fake.closed


def test_fake_transport_refuses_what_real_ones_refuse() -> None:
    fake = FakeTransport()
    fake.put(b"12", "file")
    with pytest.raises(NotFoundError):
        fake.get("nothing", limit=1)
    with pytest.raises(HostError, match="more than the 1"):
        fake.get("file", limit=1)
    with pytest.raises(InvalidRequestError):
        fake.put(b"", "../up")
    with pytest.raises(InvalidRequestError):
        fake.run([], timeout_s=1)


def test_fake_transport_fails_every_verb_while_a_failure_is_set() -> None:
    fake = FakeTransport()
    fake.failure = UnreachableError("off")
    for verb in (
        lambda: fake.run(["x"], timeout_s=1),
        lambda: fake.put(b"", "x"),
        lambda: fake.get("x", limit=1),
    ):
        with pytest.raises(UnreachableError, match="off"):
            verb()
