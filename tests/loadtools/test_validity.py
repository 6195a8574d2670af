"""When a trial is not to be believed: each check just inside and just outside of its threshold."""

from typing import Any

import pytest

from agents.hostagent.platform.counters import FACTS
from orchestrator.loadtools.combined import CAUSED_BY_LOAD
from orchestrator.loadtools.emulated_network import EmulatedNetwork
from orchestrator.loadtools.evidence import Evidence
from orchestrator.loadtools.model import Distribution, Level, LoadFacts, LoadSpec
from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.loadtools.validity import drop_reasons, judge, tolerate_neighbours

from .sampled import answer, phases

NOTHING = Distribution()
PINNED = {"server": {"cpus": [0]}, "tool": {"cpus": [1]}}


def evidence(**changes: Any) -> Evidence:
    """A calm closed load of ten connections: 1,000 answers of 10 ms in a second."""
    spec = changes.pop("spec", LoadSpec(path="/", connections=10, duration_s=1.0))
    load = LoadFacts(
        model=spec.model,
        connections=spec.connections,
        streams=spec.streams,
        tool_cpus=1,
        rate=spec.rate,
        duration_s=spec.duration_s,
        requests=spec.requests,
        warmup_s=0.0,
    )
    calm: dict[str, Any] = {
        "ok": Distribution(value_us=(10_000,), count=(1000,)),
        "other": NOTHING,
        "answered_of_load": 1000,
        "errors": {},
        "truncated": 0,
        "delivered": None,
        "rate": 1000.0,
        "tool_share": 0.5,
        "rows_match": True,
        "spoken": ("h1",),
        "rows": {},
    }
    result = {"rc": 0, "signal": None, "hung": False, "on": {"server": "a", "tool": "a"}}
    result |= {"limits": PINNED, **changes.pop("result", {})}
    return Evidence(spec=spec, load=load, result=result, **{**calm, **changes})


def answers(number: int) -> Distribution:
    return Distribution(value_us=(10_000,), count=(number,))


def codes(found: Evidence) -> list[str]:
    return [reason.code for reason in judge(found).reasons]


def spec(**changes: Any) -> LoadSpec:
    return LoadSpec(**{"path": "/", "connections": 10, "duration_s": 1.0, **changes})


def host(**facts: Any) -> dict[str, Any]:
    """A host while the load ran."""
    return {"result": {"interference": {"a": facts}}}


def used(**usage: Any) -> dict[str, Any]:
    """The usage of a load of ten seconds."""
    return {"result": {"usage": usage, "load_started_at": 0.0, "load_ended_at": 10.0}}


def before(**facts: Any) -> dict[str, Any]:
    return {"result": {"hosts": {"a": facts}}}


def samples(key: str, values: list[Any], **others: Any) -> dict[str, Any]:
    """One a second from 0 on, the server busy all the time."""
    rows = [{"t": float(t), "server_cpu_s": float(t), key: each} for t, each in enumerate(values)]
    return {"result": {"samples": [{**row, **others} for row in rows]}}


def slices(values: list[Any], key: str = "ok", ok: int = 100) -> dict[str, Any]:
    rows = [{"t": t, "ok": ok, key: value} for t, value in enumerate(values)]
    return {"rows": {"slices": rows}}


def thirds(first: int, last: int, key: str = "ok", ok: int = 100) -> dict[str, Any]:
    """Nine seconds, and the part of one that ends the window."""
    return slices([first] * 3 + [first, last, last] + [last] * 3 + [1], key, ok)


def errors(n: int, **changes: Any) -> dict[str, Any]:
    return {"errors": {"timeout": n}, "answered_of_load": 10_000 - n, **changes}


def opened(most: int | None, **changes: Any) -> dict[str, Any]:
    return {"spec": spec(connections=100, **changes), "rate": 10_000.0, **samples(
        "connections", [0, most, most, most]
    )}  # fmt: skip


def on_link(**measured: Any) -> dict[str, Any]:
    """An emulated network without loss and rate."""
    whole = {"jitter_s": None, "lost": {}, "rate_bps": None, "queues": "", "changed": False}
    return {"result": {"network": {**whole, **measured}}}


def sampled(*seen: dict[str, Any]) -> dict[str, Any]:
    return {"result": {"answers": {"seen": seen}}}


OPEN = {"model": "open", "rate": 1000.0}
SHARED = {"server": {"cpus": [0, 1]}, "tool": {"cpus": [1, 2]}}
FREE = {"server": {"cpus": None}, "tool": {"cpus": None}}
REFUSED = {"tool": {"cpus": [1], "refused": {"cpu_quota": "no control group"}}}

#: (code, what breaks it, what just does not)
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("tool_crashed", {"result": {"rc": 1}}, {"result": {"rc": 0}}),
    ("tool_crashed", {"result": {"rc": None, "signal": 9}}, {"result": {"rc": 0}}),
    ("hung", {"result": {"hung": True, "rc": 1}}, {"result": {"hung": False}}),
    ("server_died", {"result": {"server_exit": 0}}, {"result": {"server_exit": None}}),
    ("parse_mismatch", {"rows_match": False}, {"rows_match": True}),
    ("no_answers", {"answered_of_load": 0, "errors": {"broken": 3}}, {"answered_of_load": 1}),
    (
        "target_unreachable",
        {"answered_of_load": 0, "errors": {"refused": 3}},
        {"answered_of_load": 1000, "errors": {"refused": 1}},
    ),
    ("all_truncated", {"answered_of_load": 0, "truncated": 3}, {"truncated": 3}),
    ("empty_window", {"ok": NOTHING}, {"ok": Distribution(value_us=(10_000,), count=(1000,))}),
    ("http_errors", {"other": Distribution(value_us=(1,), count=(1,))}, {"other": NOTHING}),
    ("transport_errors", errors(11), errors(10)),
    (
        "underdelivered",
        {"spec": spec(**OPEN), "delivered": 0.989},
        {"spec": spec(**OPEN), "delivered": 0.99},
    ),
    (
        "check_failed",
        {"result": {"checks": [{"name": "b", "when": "after", "problem": "status 500"}]}},
        {"result": {"checks": [{"name": "b", "when": "after", "problem": None}]}},
    ),
    (
        "wrong_under_load",
        sampled(answer("during", problem="status 500")),
        sampled(answer("during")),
    ),
    (
        "answer_mixed",
        sampled(answer("before", echoes=True), answer("during", echoes=False)),
        sampled(answer("before", echoes=True), answer("during", echoes=True)),
    ),
    (
        "body_changed",
        {"spec": spec(volatile=()), **sampled(*phases("xx", "xy", "x"))},
        {"spec": spec(volatile=()), **sampled(*phases("xx", "xx", "x"))},
    ),
    (
        "answers_changed",
        sampled(*phases("xx", "xy", "x")),
        sampled(*phases("xy", "xz", "x")),
    ),
    (
        "connections_closed",
        sampled(answer("during", closes=True)),
        {"spec": spec(keepalive=False), **sampled(answer("during", closes=True))},
    ),
    ("link_stalled", {"result": {"peer_gap_s": 3.1}}, {"result": {"peer_gap_s": 3.0}}),
    ("quota_refused", {"result": {"limits": {**PINNED, **REFUSED}}}, {}),
    (
        "limits_changed",
        {"result": {"limits": {**PINNED, "x": {"changed": {"memory_bytes": "it was 5"}}}}},
        {"result": {"limits": {**PINNED, "x": {"changed": {}}}}},
    ),
    (
        "limits_refused",
        {"result": {"limits": {**PINNED, "x": {"refused": {"open_files": "no"}}}}},
        {"result": {"limits": {**PINNED, "x": {"refused": {}}}}},
    ),
    ("protocol", {"spec": spec(protocol="h2"), "spoken": ("h2", "h1")}, {"spoken": ()}),
    ("protocol", {"spoken": ("h2",)}, {"spec": spec(protocol="grpc"), "spoken": ("h2", "grpc")}),
    (
        "response_size",
        {"spec": spec(response_bytes=(10, 20)), "rows": {"length": {"min": 10, "max": 21}}},
        {"spec": spec(response_bytes=(10, 20)), "rows": {"length": {"min": 10, "max": 20}}},
    ),
    (
        "response_changed",
        {
            "rows": {"length": {"min": 12, "max": 13}},
            "result": {"checks": [{"name": "load", "when": "before", "length": 13}]},
        },
        {
            "rows": {"length": {"min": 12, "max": 13}},
            "result": {
                "checks": [
                    {"name": "load", "when": "before", "length": 13},
                    {"name": "load", "when": "after", "length": 12},
                ]
            },
        },
    ),
    ("connections_missing", opened(94), opened(95)),
    ("connections_missing", opened(50), opened(50, keepalive=False)),
    ("connections_missing", opened(50), opened(None)),
    ("tool_bound", {"tool_share": 0.851}, {"tool_share": 0.85}),
    ("tool_bound", {"tool_share": 1.0}, {"tool_share": 1.0, "spec": spec(client_measured=True)}),
    ("shared_cpus", {"result": {"limits": SHARED}}, {"result": {"limits": PINNED}}),
    (
        "shared_cpus",
        {"result": {"placement": {"a": {"shared": [["server", "tool"]], "problem": "1 core"}}}},
        {"result": {"placement": {"a": {"shared": [["server", "service:db"]]}}}},
    ),
    (
        "shared_cpus",
        {"result": {"limits": FREE}},
        {"result": {"limits": FREE, "on": {"server": "b", "tool": "a"}}},
    ),
    ("littles_law", {"rate": 1101.0}, {"rate": 1100.0}),
    (
        "littles_law",
        {"spec": spec(streams=2)},
        {"spec": spec(streams=2), "rate": 2000.0},
    ),
    ("littles_law", {"rate": 500.0}, {"spec": spec(keepalive=False), "rate": 500.0}),
    ("littles_law", {"ok": answers(200), "rate": 500.0}, {"ok": answers(199), "rate": 500.0}),
    ("littles_law", {"rate": 500.0}, {"spec": spec(client_measured=True), "rate": 500.0}),
    ("no_steady_state", thirds(100, 111), thirds(100, 110)),
    (
        "no_steady_state",
        {"spec": spec(**OPEN), **thirds(100, 89, "p50_us")},
        {"spec": spec(**OPEN), **thirds(100, 90, "p50_us")},
    ),
    (
        "no_steady_state",
        {"spec": spec(**OPEN), **thirds(100, 120, "p50_us", ok=10)},
        {"spec": spec(**OPEN), **thirds(100, 120, "p50_us", ok=9)},
    ),
    ("no_steady_state", thirds(100, 150), slices([100] * 4 + [150] * 4 + [1])),
    # The same thirds, and the same medians of 100 and 120: only the first has a trend.
    (
        "no_steady_state",
        slices([98, 100, 102, 105, 110, 115, 118, 120, 122, 1]),
        slices([100, 70, 130, 115, 105, 110, 120, 150, 90, 1]),
    ),
    ("warm_up_too_short", slices([10] * 4 + [100] * 26 + [1]), slices([90] * 4 + [100] * 26 + [1])),
    (
        "warm_up_too_short",
        slices([100 + each / 4 for each in range(31)]),
        slices([100 + each / 8 for each in range(31)]),
    ),
    ("busy_before", before(busy_share=0.11, pressure=0.5), before(busy_share=0.1)),
    ("pressure_before", before(pressure=0.11), before(pressure=0.1)),
    ("load_before", before(load1=2.1, cpus=4), before(load1=2.0, cpus=4)),
    ("load_before", before(load1=9, cpus=4), before(load1=9, cpus=4, busy_share=0.0)),
    ("foreign_process", host(foreign_share=0.051), host(foreign_share=0.05, pressure_share=0.9)),
    ("agent_cpu", used(sampler_cpu_s=0.51), used(sampler_cpu_s=0.5)),
    ("chatty_log", host(log_bytes_per_s=10.5 * 2**20), host(log_bytes_per_s=10 * 2**20)),
    ("workers_ended", used(ended_workers=1), used(ended_workers=0)),
    ("steal", host(steal_share=0.0101), host(steal_share=0.01)),
    (
        "virus_scan",
        host(seconds=10.0, foreign=[{"name": "clamd", "cpu_s": 0.11}]),
        host(seconds=10.0, foreign=[{"name": "clamd", "cpu_s": 0.1}]),
    ),
    (
        "clock_drop",
        samples("clock_mhz", [800, 4000, 3590, 4000]),
        samples("clock_mhz", [800, 4000, 3600, 4000]),
    ),
    (
        "clock_drop",
        samples("clock_mhz", [800, 4000, 800, 4000]),
        samples("clock_mhz", [800, 4000, 800, 4000], server_cpu_s=1.0),
    ),
    (
        "heating",
        samples("temperature_c", [30, 40, 60, 60, 65.1, 65.1]),
        samples("temperature_c", [30, 40, 60, 60, 65, 65]),
    ),
    ("busy_neighbour", host(foreign_share=0.51), host(foreign_share=0.05)),
    ("throttled_by_heat", host(throttle_count=1), host(throttle_count=0)),
    ("throttled_by_heat", host(cooling_state=1), host(cooling_state=0, throttle_count=0)),
    (
        "clock_limited",
        host(clock_limit_mhz=[3500.0, 4000.0]),
        host(clock_limit_mhz=[4000.0, 4000.0]),
    ),
    (
        "clock_below_base",
        host(clock_base_mhz=2000.0, clock_mhz=[1000.0, 1799.0]),
        host(clock_base_mhz=2000.0, clock_mhz=[1000.0, 1800.0]),
    ),
    (
        "clock_below_base",
        host(clock_base_mhz=2000.0, clock_mhz=[1.0, 1.0]),
        host(clock_base_mhz=None, clock_mhz=[1.0, 1.0]),
    ),
    (
        "tuning_refused",
        before(tuning={"applied": {}, "refused": {"turbo": "/sys/x: Permission denied"}}),
        before(tuning={"applied": {"turbo": "off"}, "refused": {}}),
    ),
    (
        "tuning_changed",
        host(changed_settings={"turbo": "/sys/x is '0' instead of '1'"}),
        host(changed_settings={}),
    ),
    ("on_battery", host(on_battery=True), host(on_battery=False)),
    ("on_battery", before(on_battery=True), before(on_battery=None)),
    ("swapping", host(swapped_pages=1), host(swapped_pages=0)),
    ("foreign_quota", host(quota_periods=1), host(quota_periods=0)),
    ("ports_exhausted", host(ports_exhausted=True), host(ports_exhausted=False)),
    ("listen_overflow", host(listen_overflows=1), host(listen_overflows=0)),
    ("retransmissions", host(retransmitted_share=0.0011), host(retransmitted_share=0.001)),
    (
        "retransmissions",
        host(retransmitted_share=0.1),
        {
            "spec": spec(network=EmulatedNetwork(loss=0.01)),
            "result": {
                **on_link(round_trip_s=0.0)["result"],
                **host(retransmitted_share=0.1)["result"],
            },
        },
    ),
    (
        "network_differs",
        {"spec": spec(network=EmulatedNetwork(delay_s=0.02)), **on_link(round_trip_s=0.0001)},
        {"spec": spec(network=EmulatedNetwork(delay_s=0.02)), **on_link(round_trip_s=0.0201)},
    ),
    ("network_differs", {"spec": spec(network=EmulatedNetwork())}, on_link(round_trip_s=0.02)),
    ("clock_stepped", host(clock_step_s=-0.0011), host(clock_step_s=0.001)),
    ("suspended", host(suspended_s=0.02), host(suspended_s=0.01)),
    (
        "rebooted",
        {"result": {"hosts": {"a": {"boot_id": "1"}}, "interference": {"a": {"boot_id": "2"}}}},
        {"result": {"hosts": {"a": {"boot_id": "1"}}, "interference": {"a": {"boot_id": "1"}}}},
    ),
]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"tool_share": 0.5}, "the server is saturated"),
        ({"tool_share": None}, "the load tool or the server did not keep up"),
        ({"tool_share": 0.9}, "the load tool did not keep up"),
        ({"tool_share": 0.5, "errors": {"timeout": 100_000}}, "the other requests failed"),
        ({"tool_share": 0.5, "errors": {"timeout": 1}}, "the server is saturated"),
        ({"tool_share": 0.5, "result": {"server_exit": 1}}, "the server ended"),
        ({"tool_share": 0.5, "result": {"rc": 2}}, "the load tool did not end properly"),
    ],
    ids=str,
)
def test_only_a_slow_server_is_called_saturated(changes: dict[str, Any], cause: str) -> None:
    validity = judge(evidence(spec=spec(model="open", rate=500.0), delivered=0.5, **changes))
    reason = next(each for each in validity.reasons if each.code == "underdelivered")
    assert f"answered correctly, {cause} " in f"{reason.message} "


def test_interference_on_siblings_names_them() -> None:
    placement = {"a": {"siblings": [5, 6]}}
    found = evidence(result={"interference": {"a": {"foreign_share": 0.6}}, "placement": placement})
    (reason,) = judge(found).reasons
    assert reason.code == "busy_neighbour"
    assert "on the CPUs of the trial or their siblings (CPUs 5-6)" in reason.message


@pytest.mark.parametrize(("code", "over", "under"), CASES, ids=lambda each: str(each)[:40])
def test_each_threshold_is_applied(code: str, over: dict[str, Any], under: dict[str, Any]) -> None:
    verdict = judge(evidence(**over))
    assert verdict.codes == (code,)
    assert verdict.level == THRESHOLDS[code].level
    assert codes(evidence(**under)) == []


def test_a_refused_setting_is_named_with_its_file_and_the_fix() -> None:
    why = (
        "/sys/devices/system/cpu/intel_pstate/no_turbo: Permission denied (only root may write it)"
    )
    refused = {"turbo": why, "x" * 100: "y" * 1000}
    (reason,) = judge(evidence(**before(tuning={"applied": {}, "refused": refused}))).reasons
    assert reason.message == (
        f"turbo was not set: {why}; {'x' * 30} was not set: {'y' * 300}: remove the setting from "
        "the settings of the host, or let the login of Pitwall write the file"
    )


def test_every_reason_has_a_test_case() -> None:
    tried = {code for code, _, _ in CASES} | {"cpu_pressure", "several_flags"}
    assert tried == set(THRESHOLDS)


def test_soft_reasons_of_two_causes_make_a_trial_invalid() -> None:
    one = judge(evidence(**host(steal_share=0.02)))
    assert (one.codes, one.level) == (("steal",), Level.SUSPECT)
    two = judge(evidence(**host(steal_share=0.02, retransmitted_share=0.01)))
    assert two.codes == ("steal", "retransmissions", "several_flags")
    assert two.level == Level.INVALID
    assert "steal, retransmissions" in two.reasons[-1].message


def test_soft_reasons_of_one_cause_are_one_piece_of_evidence() -> None:
    validity = judge(evidence(**host(steal_share=0.02, foreign_share=0.06)))
    assert validity.codes == ("foreign_process", "steal")
    assert validity.level == Level.SUSPECT


@pytest.mark.parametrize(
    ("facts", "expected", "level"),
    [
        (host(foreign_share=0.9), ("busy_neighbour",), Level.SUSPECT),
        (
            host(foreign_share=0.9, retransmitted_share=0.01),
            ("busy_neighbour", "retransmissions"),
            Level.SUSPECT,
        ),
        (
            {"rate": 2000.0, **host(foreign_share=0.9, retransmitted_share=0.01)},
            ("littles_law", "busy_neighbour", "retransmissions", "several_flags"),
            Level.INVALID,
        ),
        (host(foreign_share=0.9, swapped_pages=1), ("busy_neighbour", "swapping"), Level.INVALID),
        (host(), (), Level.VALID),
    ],
)
def test_other_processes_on_a_shared_host_never_invalidate(
    facts: dict[str, Any], expected: tuple[str, ...], level: Level
) -> None:
    judged = judge(evidence(**facts))
    tolerated = tolerate_neighbours(judged)
    assert (tolerated.codes, tolerated.level) == (expected, level)
    assert tolerate_neighbours(tolerated) == tolerated


def test_excluded_soft_reasons_do_not_invalidate() -> None:
    validity = judge(evidence(rate=2000.0, **host(steal_share=0.02)))
    assert validity.codes == ("littles_law", "steal", "several_flags")
    assert [each.code for each in drop_reasons(validity, {"littles_law"})] == ["steal"]
    assert len(drop_reasons(validity, {"http_errors"})) == 3


def test_every_reason_of_a_load_is_registered() -> None:
    assert set(THRESHOLDS) >= CAUSED_BY_LOAD


def test_cpu_wait_counts_only_if_other_processes_worked() -> None:
    alone = host(foreign_share=0.01, pressure_share=0.9)
    assert codes(evidence(**alone)) == []
    among_others = host(foreign_share=0.2, pressure_share=0.11)
    assert codes(evidence(**among_others)) == ["foreign_process", "cpu_pressure"]
    with_room = host(foreign_share=0.2, pressure_share=0.1)
    assert codes(evidence(**with_room)) == ["foreign_process"]


UNKNOWN = dict.fromkeys((*FACTS, "cpus", "seconds"))


def test_unknown_facts_are_not_a_reason() -> None:
    facts = {"on": {}, "limits": {}, "peer_gap_s": None, "checks": [], "samples": []}
    result = {**facts, "hosts": {"a": UNKNOWN}, "interference": {"a": UNKNOWN}}
    rows = {"length": None, "slices": []}
    unknown = {"tool_share": None, "delivered": None, "rate": None, "spoken": (), "errors": None}
    assert codes(evidence(result=result, rows=rows, **unknown)) == []
    assert codes(evidence(**samples("clock_mhz", [None] * 9, temperature_c=None))) == []


def test_the_host_is_named_if_there_are_several() -> None:
    busy = {"foreign_share": 0.2, "foreign": [{"name": "cron", "cpu_s": 1.5}]}
    validity = judge(evidence(result={"interference": {"a": {"foreign_share": 0.0}, "b": busy}}))
    (reason,) = validity.reasons
    assert "20 % of a core" in reason.message
    assert "cron 1.50 s" in reason.message
    assert "on host b" in reason.message


def test_random_paths_have_no_expected_size() -> None:
    result = {"checks": [{"name": "load", "when": "before", "length": 13}]}
    rows = {"length": {"min": 1, "max": 99}}
    changing = spec(path="", random_path="/[a-z]{3}")
    assert codes(evidence(spec=changing, rows=rows, result=result)) == []


def test_a_checked_size_is_ignored_for_encoded_bodies() -> None:
    check = {"name": "load", "when": "before", "length": 13, "encoding": "gzip"}
    rows = {"length": {"min": 99, "max": 99}}
    assert codes(evidence(rows=rows, result={"checks": [check]})) == []


@pytest.mark.parametrize(("code", "over", "under"), CASES, ids=lambda each: str(each)[:40])
def test_each_message_has_the_threshold_and_what_to_do(
    code: str, over: dict[str, Any], under: dict[str, Any]
) -> None:
    (reason,) = judge(evidence(**over)).reasons
    rule = THRESHOLDS[code]
    assert reason.message.endswith(rule.advice)
    assert rule.text in reason.message
    assert "_" not in reason.message.removesuffix(rule.advice)
