"""Who gets separate CPUs on the hosts of a job, and what a host is expected to give them."""

from textwrap import dedent
from typing import Any

import pytest

from agents.hostagent.platform.placement import Share
from agents.hostagent.platform.topology import Core, Topology
from orchestrator.benchmarks.spec import Spec, parse
from orchestrator.core.errors import HostSetupError, InvalidRequestError
from orchestrator.dispatch.cpus import get_service_share, list_shares, predict_placement

ONE_HOST = {"target": "a", "generator": "a", "backend": "a"}
TWO_HOSTS = {"target": "a", "generator": "b", "backend": "b"}
FOUR_CORES = {
    "threads": 8,
    "topology": Topology(tuple(Core((cpu, cpu + 4)) for cpu in range(4))).as_json(),
}


def define(more: str = "") -> Spec:
    return parse(
        dedent(
            """\
            version: 1
            title: Hello
            subject: {start: [serve, "{port}"]}
            load: {path: /, duration_s: 1}
            services:
              db: {start: [db, "{port}"], limits: {cpus: 2}}
              cache: {start: [cache, "{port}"]}
            """
        )
        + more
    )


def test_a_service_has_its_number_of_cpus_or_those_of_the_server() -> None:
    shares = list_shares(define(), ONE_HOST)
    assert shares == {"a": [Share("server"), Share("tool"), Share("service:db", 2)]}
    assert get_service_share(define(), ONE_HOST, "cache") == "server"


def test_services_on_another_host_have_a_share_beside_the_load_tool() -> None:
    shares = list_shares(define("limits: {target: {cpus: 3}}\n"), TWO_HOSTS)
    assert shares["a"] == [Share("server", 3)]
    assert shares["b"] == [Share("tool"), Share("service:db", 2), Share("services")]
    assert get_service_share(define(), TWO_HOSTS, "cache") == "services"


def test_nothing_is_pinned_if_the_definition_disables_it() -> None:
    assert list_shares(define("pin_cpus: false\n"), ONE_HOST) == {}
    assert get_service_share(define("pin_cpus: false\n"), ONE_HOST, "cache") is None


def test_a_choice_for_too_few_cores_needs_pinning() -> None:
    with pytest.raises(InvalidRequestError, match="too_few_cores: pin_cpus is false"):
        define("pin_cpus: false\ntoo_few_cores: unsupported\n")


@pytest.mark.parametrize(
    ("facts", "tuning", "tool"),
    [
        (FOUR_CORES, {}, (2, 3, 6, 7)),
        (FOUR_CORES, {"smt": "off"}, (2, 3)),
        ({"threads": 4}, {}, (2, 3)),
        ({}, {}, None),
    ],
)
def test_the_cpus_of_the_load_tool_are_predicted(
    facts: dict[str, Any], tuning: dict[str, str], tool: tuple[int, ...] | None
) -> None:
    placement = predict_placement(facts, tuning, [Share("server"), Share("tool")])
    assert placement.cpus["tool"] == tool


def test_more_cpus_than_the_host_has_are_refused() -> None:
    with pytest.raises(HostSetupError, match="want 5 CPUs of one host, and it has 4"):
        predict_placement(FOUR_CORES, {"smt": "off"}, [Share("server", 5)])
