"""Several loads on one start of the server, and what they find in the trial's folder."""

import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.dispatch.tls import make_certificates
from tests.agents.pair import ADDRESSES, Pair, needs_linux, two_hosts
from tests.agents.support import (
    FAKE_TOOL,
    SERVER,
    AgentHost,
    a_check,
    a_load,
    a_plan,
    a_ready,
    a_server,
    a_tool,
    a_trial,
)

#: As FAKE_TOOL, but its report holds the words after ROWS, and nothing may be there before it.
TELLING = """
import os
if "--version" not in sys.argv:
    assert not any(map(os.path.exists, sys.argv[1:3])), "what another load left"
    print("said", *sys.argv[3:])
"""
TOOL = FAKE_TOOL.replace("out, rows", TELLING + "out, rows", 1).replace(
    '{"fake": True}', '{"words": sys.argv[3:], "who": os.environ.get("WHO")}'
)


def build_recorded_load(*words: str, **changes: Any) -> dict[str, Any]:
    return a_load("{tool}", "{out}", "{rows}", *words, **changes)


def test_every_load_step_is_measured_on_one_start_of_the_server(host: AgentHost) -> None:
    host.send_source({"server.py": SERVER.format(extra="open('starts', 'a').write('x')")})
    steps = [
        build_recorded_load(word, warmup_s=at) for word, at in (("a", 0.0), ("b", 1.0), ("c", 0.0))
    ]
    step = host.run_round(a_plan(a_trial(host.send_tool(TOOL), loads=steps, expected_s=3.0)))
    assert step.named("trial_done"), step.named("trial_failed")
    assert (host.root / "builds/c0ffee-r/tree/starts").read_text() == "x"
    loads = step.file("t1", "result.json")["loads"]
    assert [load["argv"][3] for load in loads] == ["a", "b", "c"]
    ends = [time for load in loads for time in (load["load_started_at"], load["load_ended_at"])]
    assert ends == sorted(ends)
    names = ("tool.json", "tool-2.json", "tool-3.json")
    assert [step.file("t1", name)["words"] for name in names] == [["a"], ["b"], ["c"]]
    warm = [step.file("t1", f"rows{n}.json")["warmup"]["n"] for n in ("", "-2", "-3")]
    assert warm == [0, 1, 0]
    phases = [event for event in step.named("phase") if "step" in event["phase"]]
    assert [event["phase"] for event in phases] == [f"measuring step {n} of 3" for n in (1, 2, 3)]
    # Nobody looks before the last one has ended.
    quiet_until = [event["t"] + event["quiet_s"] for event in phases]
    assert quiet_until == pytest.approx([phases[0]["t"] + 3.5] * 3, abs=0.5)


def test_results_of_primers_and_warm_ups_are_dropped(host: AgentHost) -> None:
    loads = [
        build_recorded_load("primer", kind="primer"),
        build_recorded_load("warmup", kind="warmup"),
        build_recorded_load("first"),
        build_recorded_load("warmup", kind="warmup"),
        build_recorded_load("second"),
    ]
    step = host.run_round(a_plan(a_trial(host.send_tool(TOOL), loads=loads)))
    assert step.named("trial_done"), step.named("trial_failed")
    assert step.file("t1", "tool.json")["words"] == ["first"]
    assert step.file("t1", "tool-2.json")["words"] == ["second"]
    kept = {path.name for path in (step.folder / "trials/t1").iterdir()}
    assert kept == {
        *("result.json", "server.log", "tool.stderr"),
        *("tool.json", "rows.json", "tool-2.json", "rows-2.json"),
    }
    phases = [event["phase"] for event in step.named("phase") if event["trial"] == "t1"]
    assert phases[:3] == ["starting", "priming", "warming up"]
    assert len(step.file("t1", "result.json")["loads"]) == 2


def test_a_failed_later_step_fails_the_trial(host: AgentHost) -> None:
    failing = a_load("{python}", "-c", "import sys; sys.exit('out of ports')")
    step = host.run_round(
        a_plan(a_trial(host.send_tool(TOOL), loads=[build_recorded_load(), failing]))
    )
    failed = step.only("trial_failed")
    assert failed["code"] == "tool_failed"
    assert "out of ports" in failed["output"]


def test_a_load_gets_its_files_and_its_environment(host: AgentHost) -> None:
    load = build_recorded_load("@{trial_dir}/load.lua", env={"WHO": "{port} of {address}"})
    trial = a_trial(host.send_tool(TOOL), loads=[load], files={"load.lua": "h1"})
    step = host.run_round(a_plan(trial, texts={"h1": "wrk.method = 'POST'\n"}))
    folder = step.folder / "trials/t1"
    assert step.file("t1", "tool.json")["words"] == [f"@{folder}/load.lua"]
    port = step.file("t1", "result.json")["port"]
    assert step.file("t1", "tool.json")["who"] == f"{port} of 127.0.0.1"
    assert (folder / "load.lua").read_text() == "wrk.method = 'POST'\n"


#: A server of HTTPS: `server.py BIND PORT CERT KEY`. It sends lengths, as it ends connections
#: without the word that TLS has for it.
SECURE = (
    SERVER.replace("200 OK", "200 OK\\r\\nContent-Length: 13")
    .replace(
        'socketserver.TCPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()',
        """
import ssl
server = socketserver.TCPServer((sys.argv[1], int(sys.argv[2])), Handler)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(*sys.argv[3:5])
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()
""",
    )
    .format(extra="")
)
SECURE_ARGV = ["{python}", "server.py", "{bind}", "{port}", "{cert}", "{key}"]


def certificates() -> dict[str, str]:
    made = make_certificates(list(ADDRESSES.values()), now=datetime.now(UTC))
    return {"ca": made.ca, "cert": made.cert, "key": made.key}


def a_secure_trial(oha: str, **changes: Any) -> dict[str, Any]:
    load = a_load(
        *("{tool}", "--no-tui", "--output-format", "json", "-o", "{out}", "--db-url", "{rows}"),
        *("--cacert", "{ca}", "-n", "20", "-c", "2", "https://{address}:{port}/hello"),
    )
    plain = {
        "server": a_server(argv=SECURE_ARGV),
        "ready": a_ready(tls=True),
        "checks": [a_check(tls=True)],
        "loads": [load],
        "tool": a_tool(oha, name="oha"),
    }
    return a_trial("", **{**plain, **changes})


def test_server_and_load_get_the_certificates_of_the_job(host: AgentHost, oha: str) -> None:
    host.send_source({"server.py": SECURE})
    step = host.run_round(a_plan(a_secure_trial(oha), tls=certificates()))
    assert step.named("trial_done"), step.named("trial_failed")
    assert step.file("t1", "rows.json")["by_status"] == {"200": 20}
    folder = host.root / "jobs/j1/tls"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"ca.pem": 0o644, "cert.pem": 0o644, "key.pem": 0o600}
    assert host.verb("stop-all")["stopped"] == []


def test_a_server_with_other_certificates_is_not_trusted(host: AgentHost, oha: str) -> None:
    host.send_source({"server.py": SECURE})
    tls = {**certificates(), "ca": certificates()["ca"]}
    trial = a_secure_trial(oha, ready=a_ready(tls=True, timeout_s=5))
    failed = host.run_round(a_plan(trial, tls=tls)).only("trial_failed")
    assert failed["code"] == "wrong_answer"
    assert "certificate" in failed["message"]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with two_hosts(tmp_path) as pair:
        yield pair


@needs_linux
def test_only_the_serving_host_gets_the_private_key(pair: Pair, oha: str) -> None:
    pair.b.send_source({"server.py": SECURE})
    whole = certificates()
    trial = a_secure_trial(oha, server=a_server(on="b", argv=SECURE_ARGV), files={"note": "h1"})
    texts = {"h1": "hi"}
    follower, port = pair.follow(trial, tls=whole, texts=texts)
    lead = pair.lead(port, trial, tls={**whole, "cert": None, "key": None}, texts=texts)
    lead.await_end()
    assert lead.named("trial_done"), lead.events
    assert lead.file("t1", "rows.json")["by_status"] == {"200": 20}
    assert [path.name for path in (pair.a.root / "jobs/j1/tls").iterdir()] == ["ca.pem"]
    for host in (pair.a, pair.b):
        assert (host.root / "jobs/j1/a1-r1/trials/t1/note").read_text() == "hi"
    follower.await_end()
