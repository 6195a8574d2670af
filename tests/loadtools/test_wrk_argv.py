from dataclasses import replace

import pytest

from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.registry import TOOLS
from orchestrator.loadtools.wrk_script import quote_lua

WRK = TOOLS["wrk"]
LOAD = LoadSpec(path="/hello", connections=8, duration_s=5.0, warmup_s=2.0)


def test_a_load_has_a_warm_up_before():
    warmup, measure = WRK.invocations(LOAD, 2)
    assert (warmup.kind, measure.kind) == ("warmup", "measure")
    assert measure.argv == (
        "{tool}", "-t", "2", "-c", "8", "-d", "5s", "--timeout", "10s",
        "-s", "{trial_dir}/load.lua", "http://{address}:{port}/",
    )  # fmt: skip
    assert measure.env == {"PITWALL_OUT": "{out}", "PITWALL_CONNECTIONS": "8"}
    assert warmup.argv[6] == "2s"
    assert warmup.env == {}
    assert measure.warmup_s == 0


def test_a_primer_has_a_low_rate_and_its_own_script():
    spec = replace(LOAD, primer_s=3.0)
    primer = WRK.invocations(spec, 2)[0]
    assert primer.kind == "primer"
    assert primer.argv[1:5] == ("-t", "1", "-c", "1")
    assert "{trial_dir}/primer.lua" in primer.argv
    assert set(WRK.files(spec)) == {"load.lua", "primer.lua"}
    assert set(WRK.files(LOAD)) == {"load.lua"}


@pytest.mark.parametrize(
    ("connections", "cpus", "threads"), [(8, 2, "2"), (3, 2, "1"), (9, 4, "3"), (1, 8, "1")]
)
def test_all_connections_are_used(connections, cpus, threads):
    """wrk gives each thread the same number and leaves the rest out."""
    argv = WRK.invocations(replace(LOAD, connections=connections), cpus)[-1].argv
    assert argv[argv.index("-t") + 1] == threads


def test_tls_is_selected_by_the_address():
    assert WRK.invocations(replace(LOAD, tls=True), 1)[-1].argv[-1] == "https://{address}:{port}/"


def test_files_do_not_depend_on_the_step():
    """The files of a trial are written once, for all its loads."""
    assert WRK.files(LOAD) == WRK.files(replace(LOAD, connections=3, duration_s=1.0))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"duration_s": 2.5}, "duration_s"),
        ({"warmup_s": 0.5}, "warmup_s"),
        ({"primer_s": 0.5}, "primer_s"),
        ({"request_timeout_s": 0.5}, "request_timeout_s"),
        ({"duration_s": None, "requests": 100}, "requests"),
        ({"model": "open", "rate": 100.0}, "rate"),
        ({"protocol": "h2"}, "protocol"),
        ({"random_path": "/[0-9]"}, "random_path"),
        ({"method": "HEAD"}, "method"),
    ],
)
def test_unsupported_loads_are_refused(changes, field):
    assert WRK.problems(LOAD) == []
    assert field in [name for name, _ in WRK.problems(replace(LOAD, **changes))]


def test_any_text_is_quoted_as_a_lua_string():
    assert quote_lua('a"b\\c\r\n1ü') == '"a\\034b\\092c\\013\\0101\\195\\188"'
