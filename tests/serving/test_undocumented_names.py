"""Names of gunicorn, kombu and allauth that are not documented: an update that drops one has to
fail here, with its name, and not in a running server."""

import inspect
import re
import tomllib
from importlib import import_module

import pytest
from gunicorn.workers.gthread import ThreadWorker

from orchestrator.serving.connection import Connection
from tests.support.engine import ROOT

#: Where a name is, and who uses it.
NAMES = {
    "gunicorn.workers.gthread:ThreadWorker.handle": "orchestrator/serving/worker.py",
    "gunicorn.workers.gthread:ThreadWorker.handle_request": "orchestrator/serving/worker.py",
    "gunicorn.workers.gthread:ThreadWorker.set_accept_enabled": "orchestrator/serving/poller.py",
    "gunicorn.workers.gthread:ThreadWorker.is_parent_alive": "orchestrator/serving/poller.py",
    "gunicorn.workers.gthread:ThreadWorker.wait_for_and_dispatch_events": (
        "orchestrator/serving/poller.py"
    ),
    "gunicorn.workers.gthread:PollableMethodQueue.defer": "orchestrator/serving/worker.py",
    "gunicorn.workers.gthread:PollableMethodQueue.run_callbacks": "orchestrator/serving/poller.py",
    "gunicorn.http:get_parser": "orchestrator/serving/connection.py",
    "gunicorn.http.unreader:Unreader.take_buffered": "orchestrator/serving/connection.py",
    "gunicorn.http.errors:LimitRequestLine": "orchestrator/serving/worker.py",
    "allauth.account.internal.flows.login:perform_password_login": (
        "orchestrator/web/account/login.py"
    ),
    "allauth.socialaccount.internal.jwtkit:verify_and_decode": "orchestrator/accounts/oidc.py",
    "kombu.transport:TRANSPORT_ALIASES": "orchestrator/config/broker.py",
    "kombu.transport.redis:QoS.ack": "orchestrator/config/broker.py",
    "kombu.transport.redis:QoS.restore_at_shutdown": "orchestrator/config/broker.py",
    "kombu.transport.redis:Channel.QoS": "orchestrator/config/broker.py",
    "kombu.transport.redis:Transport.Channel": "orchestrator/config/broker.py",
    "kombu.transport.redis:Transport.register_with_event_loop": "orchestrator/config/broker.py",
    "kombu.transport.redis:Transport.close_connection": "orchestrator/config/broker.py",
}
#: Attributes that objects get while they live: what the source has to say.
WORDS = {
    "kombu.transport.virtual.base:QoS": ("self._on_collect =",),
    "kombu.transport.redis:Transport": ("self.cycle", "loop.on_tick.add"),
    "kombu.asynchronous.hub:Hub": ("self.on_tick =",),
    "gunicorn.workers.gthread:ThreadWorker": (
        "self.tpool", "self.poller", "self.method_queue", "self.sockets", "self.cfg.threads",
    ),
}  # fmt: skip
PINNED = ("gunicorn", "kombu", "django-allauth")


def import_name(place: str) -> object:
    module, _, path = place.partition(":")
    value: object = import_module(module)
    for name in path.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("place", NAMES)
def test_an_undocumented_name_exists(place: str) -> None:
    assert import_name(place) is not None, f"{NAMES[place]} rests on {place}"


@pytest.mark.parametrize("place", WORDS)
def test_undocumented_source_text_is_unchanged(place: str) -> None:
    source = inspect.getsource(import_name(place))  # type: ignore[arg-type]
    missing = [word for word in WORDS[place] if word not in source]
    assert missing == [], place


def test_our_connection_has_all_attributes_that_gunicorn_uses() -> None:
    """`handle` is gunicorn's: each attribute of a connection that it reads has to be there."""
    source = inspect.getsource(ThreadWorker.handle) + inspect.getsource(ThreadWorker.handle_request)
    attributes = set(re.findall(r"\bconn\.(\w+)", source)) - {"wait_for_data"}
    ours = set(dir(Connection)) | set(re.findall(r"self\.(\w+)", inspect.getsource(Connection)))
    assert attributes - ours == set()


@pytest.mark.parametrize("package", PINNED)
def test_packages_with_undocumented_names_are_pinned_exactly(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = [each for each in project["dependencies"] if re.match(rf"{package}\b", each)]
    assert [re.fullmatch(r"[\w-]+(\[[\w,]+\])?==[\d.]+", pin) is not None for pin in pins] == [True]
