"""Services and limits of a definition: what they mean, and what is refused because it cannot be."""

import json

import pytest

from orchestrator.benchmarks.load_specs import check_loads
from orchestrator.benchmarks.spec import from_data, parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.ids import hash_value
from tests.support.factories import DEFINITION

SERVICES = """\
services:
  redis:
    start: [redis-server, --port, "{port}", --bind, "{bind}"]
    limits: {cpus: 1, memory: 256 MiB}
  app:
    start: ["{python}", app.py, "{port}", "{redis_host}", "{redis_port}"]
    env: {REDIS: "{redis_addresses}"}
    count: 3
    role: target
    ready: {path: /ready, status: 204, timeout_s: 5}
limits:
  target: {cpus: 2, cpu_quota: 1.5, memory: 1.5 GiB, open_files: 4096}
  generator: {cpus: 1}
"""
#: Of the canonical form of DEFINITION as it was stored before there were services and limits.
DIGEST_BEFORE = "3a2a2dd88df42eb0ff0c66db560530cae7084357dd4419b7b2f59822f76ea478"
PROXY = DEFINITION.replace('"{port}"]', '"{port}", "{bind}", "{app_addresses}"]') + SERVICES


def test_services_in_order_and_limits_are_parsed() -> None:
    spec = parse(PROXY)
    assert list(spec.services) == ["redis", "app"]
    redis, app = spec.services.values()
    assert (redis.role, redis.count, redis.ready.path) == ("backend", 1, None)
    assert (app.role, app.count, app.ready.status) == ("target", 3, 204)
    assert redis.limits.memory == 256 * 1024**2
    assert spec.limits.target.memory == 3 * 1024**3 // 2
    assert spec.limits.generator.cpu_quota is None
    assert spec.roles == {"target", "generator", "backend"}
    assert spec.unbound == ("app",)


def test_the_order_of_services_is_stored() -> None:
    spec = parse(PROXY)
    stored = json.loads(json.dumps(spec.model_dump(mode="json"), sort_keys=True))
    assert from_data(stored) == spec
    assert list(from_data(stored).services) == ["redis", "app"]


def test_a_definition_without_services_and_limits_keeps_its_digest() -> None:
    assert hash_value(parse(DEFINITION).model_dump(mode="json")) == DIGEST_BEFORE
    assert parse(DEFINITION).roles == {"target", "generator"}


def test_an_older_axis_may_have_a_now_reserved_name() -> None:
    old = DEFINITION.replace("connections: [4]", "connections: [4]\n  address: [a]")
    data = parse(DEFINITION).model_dump(mode="json") | {
        "matrix": {"connections": [4], "address": ["a"]}
    }
    assert list(from_data(data).matrix) == ["connections", "address"]
    with pytest.raises(InvalidRequestError, match="taken by the agent"):
        parse(old)


WRONG = [
    ("role: target", "role: victim", "services.app.role", "expected 'target'"),
    ("count: 3", "count: 33", "services.app.count", "less than or equal to 32"),
    ("count: 3", "count: 0", "services.app.count", "greater than or equal to 1"),
    ("count: 3", "count: 3\n    port: 8001", "services.app", "only one process can use port 8001"),
    ('app.py, "{port}"', "app.py", "services.app", "does not get its port"),
    ("{redis_host}", "{app_host}", "services.app.start[3]", "not available yet"),
    ("{redis_host}", "{address}", "services.app.start[3]", "not available yet"),
    ("{redis_host}", "{nginx_host}", "services.app.start[3]", "one of {python}"),
    ('"{redis_addresses}"', '"{redis_adresses}"', "services.app.env.REDIS", "{redis_addresses}"),
    ("  redis:\n", "  Redis:\n", "services.Redis", "pattern"),
    ("path: /ready, status", "status", "services.app.ready", "set path as well"),
    ("path: /ready", "path: ready", "services.app.ready.path", "pattern"),
    ("{path: /ready, ", "{body: x, ", "services.app.ready.body", "unknown field"),
    ("memory: 256 MiB", "memory: 256 pounds", "services.redis.limits.memory", "512 MiB"),
    ("memory: 256 MiB", "memory: 2 KiB", "services.redis.limits.memory", "greater than"),
    ("cpu_quota: 1.5", "cpu_quota: 2.5", "limits.target", "lower one or raise the other"),
    ("cpu_quota: 1.5", "cpu_quota: 0", "limits.target.cpu_quota", "greater than"),
    ("  generator: {cpus: 1}", "  backend: {cpus: 1}", "limits", "each service has its own limits"),
    ("  generator: {cpus: 1}", "  load: {cpus: 1}", "limits.load", "unknown field"),
    ("rounds: 5", "pin_cpus: false", "limits.target.cpus", "pin_cpus is false"),
    ("  redis:\n", "  redis:\n    port: 99\n", "services.redis.port", "greater than"),
    ("  connections: [4]", "  connections: [4]\n  bind: [a]", "matrix.bind", "by the agent"),
    (
        "  connections: [4]",
        "  connections: [4]\n  app_port: [a]",
        "matrix.app_port",
        "by the service app",
    ),
    (
        "  ready: {path: /hello",
        '  build: [[make, "{redis_port}"]]\n  ready: {path: /hello',
        "subject.build[0][1]",
        "not available yet",
    ),
]


@pytest.mark.parametrize(("old", "new", "path", "words"), WRONG)
def test_impossible_services_and_limits_are_refused_with_the_reason(
    old: str, new: str, path: str, words: str
) -> None:
    assert old in PROXY
    with pytest.raises(InvalidRequestError) as caught:
        parse(PROXY.replace(old, new, 1))
    assert caught.value.field == path
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


def test_two_processes_on_one_port_of_a_host_are_refused() -> None:
    source = PROXY.replace("count: 3", "port: 8001").replace(
        "  ready: {path: /hello", "  port: 8001\n  ready: {path: /hello"
    )
    with pytest.raises(InvalidRequestError, match="the port of subject") as caught:
        parse(source)
    assert caught.value.field == "services.app.port"


def test_services_must_be_a_mapping() -> None:
    with pytest.raises(InvalidRequestError, match="expected a mapping"):
        parse(DEFINITION + "services: [{name: redis, start: [a, '{port}']}]\n")


def test_a_placeholder_of_the_load_names_an_axis() -> None:
    with pytest.raises(InvalidRequestError, match="not an axis") as caught:
        parse(DEFINITION.replace('connections: "{connections}"', 'connections: "{port}"'))
    assert caught.value.field == "load.connections"


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("  path: /hello\n", '  path: /hello\n  body: "{redis_port}"\n', "load.body"),
        ("  path: /hello\n", "  path: /{app_host}\n", "load.path"),
        ("  path: /hello\n", '  path: /hello\n  headers: {x: "{app_port}"}\n', "load.headers.x"),
        ("generator: {cpus: 1}", "generator: {open_files: 30}", "limits.generator.open_files"),
    ],
)
def test_a_load_that_the_host_cannot_send_is_refused(old: str, new: str, path: str) -> None:
    assert old in PROXY
    with pytest.raises(InvalidRequestError) as caught:
        check_loads(parse(PROXY.replace(old, new, 1)))
    assert caught.value.field == path
