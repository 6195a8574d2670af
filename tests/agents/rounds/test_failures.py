"""Failures are reported with a code, a message and the output that explains them."""

import os
import socket
from typing import Any

import pytest

from tests.agents.support import (
    SERVER,
    AgentHost,
    Step,
    a_build,
    a_check,
    a_load,
    a_plan,
    a_ready,
    a_server,
    a_tool,
    a_trial,
    is_running,
    limits,
    pids_in,
    write_tar,
)


def fail(host: AgentHost, **changes: Any) -> dict[str, Any]:
    """The `trial_failed` of a round whose first trial has these changes; the second one is well."""
    path = host.send_tool()
    bad = a_trial(path, **changes)
    step = host.run_round(a_plan(bad, a_trial(path, id="t2")))
    assert step.only("trial_done")["trial"] == "t2", step.events
    assert step.events[-1]["event"] == "round_done"
    assert not (step.folder / "trials/t1/result.json").exists()
    return step.only("trial_failed")


def test_a_taken_port_is_named_with_its_holder(host: AgentHost) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        failed = fail(host, server=a_server(port=port))
    assert failed["code"] == "port_in_use"
    assert str(port) in failed["message"]
    if os.path.exists("/proc/net/tcp"):
        assert f"pid {os.getpid()}" in failed["message"]


def test_the_output_of_a_server_that_does_not_start_is_shown(host: AgentHost) -> None:
    broken = a_server(argv=["{python}", "-c", "import sys; sys.exit('no config.toml')"])
    failed = fail(host, server=broken)
    assert failed["code"] == "server_did_not_start"
    assert "1" in failed["message"]
    assert "no config.toml" in failed["output"]


def test_a_missing_program_of_the_server_is_reported(host: AgentHost) -> None:
    failed = fail(host, server=a_server(argv=["no-such-program"]))
    assert failed["code"] == "server_did_not_start"
    assert "no-such-program" in failed["message"]


def test_another_port_is_tried_if_the_first_was_taken(host: AgentHost) -> None:
    first_time_taken = (
        "seen = os.path.exists('seen')\n"
        "open('seen', 'w').close()\n"
        "if not seen: sys.exit('OSError: [Errno 98] Address already in use')"
    )
    host.send_source({"server.py": SERVER.format(extra=first_time_taken)})
    step = host.run_round(a_plan(a_trial(host.send_tool())))
    assert step.only("trial_done")


def test_a_server_that_never_responds_fails_the_trial(host: AgentHost) -> None:
    # A shell has written its line long before, also on a busy machine.
    ready = a_ready(timeout_s=1)
    silent = a_server(argv=["/bin/sh", "-c", "echo thinking; exec sleep 60"])
    failed = fail(host, server=silent, ready=ready)
    assert failed["code"] == "server_not_ready"
    assert "thinking" in failed["output"]


def test_a_wrong_body_fails_the_trial(host: AgentHost) -> None:
    ready = a_ready(body="Good day", timeout_s=5)
    failed = fail(host, ready=ready)
    assert failed["code"] == "wrong_answer"
    assert "Hello, World!" in failed["message"]
    assert "Good day" in failed["message"]


def test_a_wrong_status_fails_the_trial(host: AgentHost) -> None:
    failed = fail(host, ready=a_ready(path="/", status=204, timeout_s=5))
    assert failed["code"] == "wrong_answer"
    assert "200 instead of 204" in failed["message"]


def test_checks_are_repeated_after_the_load(host: AgentHost) -> None:
    spoil = a_load(
        "{python}",
        "-c",
        "import subprocess, sys\n"
        "open(sys.argv[4] + '/spoilt', 'w').close()\n"
        "sys.exit(subprocess.call(sys.argv[1:4]))",
        *("{tool}", "{out}", "{rows}", "{tree}"),
    )
    turning = SERVER.replace(
        'b"Hello, World!"', 'b"Oops" if os.path.exists("spoilt") else b"Hello, World!"'
    )
    host.send_source({"server.py": turning.format(extra="")})
    step = host.run_round(a_plan(a_trial(host.send_tool(), loads=[spoil])))
    failed = step.only("trial_failed")
    assert failed["code"] == "wrong_answer"
    assert "after the load" in failed["message"]


def test_a_server_that_died_under_load_is_reported(host: AgentHost) -> None:
    killing = a_load(
        "{python}",
        "-c",
        "import os, subprocess, sys, time\n"
        "code = subprocess.call(sys.argv[1:4])\n"
        "os.kill(int(open(sys.argv[4] + '/pid').read()), 9)\n"
        "time.sleep(0.2)\n"
        "sys.exit(code)",
        *("{tool}", "{out}", "{rows}", "{tree}"),
    )
    telling = "open('pid', 'w').write(str(os.getpid())); print('alive so far', flush=True)"
    host.send_source({"server.py": SERVER.format(extra=telling)})
    step = host.run_round(a_plan(a_trial(host.send_tool(), loads=[killing])))
    failed = step.only("trial_failed")
    assert failed["code"] == "server_died"
    assert "-9" in failed["message"]
    assert "alive so far" in failed["output"]


def test_a_missing_load_tool_is_reported_before_the_server_starts(host: AgentHost) -> None:
    failed = fail(host, tool=a_tool("tools/none/oha"))
    assert failed["code"] == "tool_missing"
    assert "tools/none/oha" in failed["message"]


def test_a_load_tool_that_cannot_be_run_is_reported(host: AgentHost) -> None:
    (host.root / "tools/data").write_text("no program")
    failed = fail(host, tool=a_tool("tools/data"))
    assert failed["code"] == "tool_missing"


def test_the_output_of_a_failed_load_tool_is_shown(host: AgentHost) -> None:
    failed = fail(host, loads=[a_load("{python}", "-c", "import sys; sys.exit('bad URL')")])
    assert failed["code"] == "tool_failed"
    assert "bad URL" in failed["output"]


def test_a_tool_report_that_is_not_json_is_refused(host: AgentHost) -> None:
    path = host.send_tool()
    spoil = (
        "import subprocess, sys; subprocess.call(sys.argv[1:]); open(sys.argv[2], 'w').write('{')"
    )
    load = a_load("{python}", "-c", spoil, "{tool}", "{out}", "{rows}")
    step = host.run_round(a_plan(a_trial(path, loads=[load])))
    assert step.only("trial_failed")["code"] == "tool_failed"


LEFT = {
    "nothing": ("", "left no tool.json"),
    "half a report": ("open(out, 'w').write('{\"summary\": {\"to')", "cannot be read"),
    "garbage": ("open(out, 'wb').write(bytes(range(256)))", "cannot be read"),
}


@pytest.mark.parametrize(("leaves", "message"), LEFT.values(), ids=LEFT)
def test_the_output_of_a_load_tool_without_a_report_is_shown(
    host: AgentHost, leaves: str, message: str
) -> None:
    say = "print('usage: tool URL'); sys.stderr.write('unknown option -z')"
    load = a_load(
        "{python}", "-c", f"import sys; out = sys.argv[1]; {say}; {leaves}", "{out}", "{rows}"
    )
    failed = fail(host, loads=[load])
    assert failed["code"] == "tool_failed"
    assert message in failed["message"]
    assert "usage: tool URL" in failed["output"]
    assert "unknown option -z" in failed["output"]


def test_an_unknown_reader_is_refused_with_the_known_ones(host: AgentHost) -> None:
    failed = fail(host, tool=a_tool(host.send_tool(), reader="hey"))
    assert failed["code"] == "internal"
    assert "'hey'" in failed["message"]
    assert "oha" in failed["message"]


def test_a_failed_check_fails_the_trial_before_the_load(host: AgentHost) -> None:
    loading = a_load("{python}", "-c", "open('loaded', 'w')")
    wrong = a_check(name="2", response={"sha256": "0" * 64})
    path = host.send_tool()
    step = host.run_round(a_plan(a_trial(path, loads=[loading], checks=[a_check(), wrong])))
    failed = step.only("trial_failed")
    assert failed["code"] == "wrong_answer"
    assert "check '2' before the load" in failed["message"]
    assert not (step.folder / "trials/t1/loaded").exists()


#: Takes any first words for a request of HTTP/1.1.
OLD = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n")
    connection.close()
"""


def test_another_protocol_than_requested_is_detected(host: AgentHost) -> None:
    old = a_server(argv=["{python}", "-c", OLD, "{port}"])
    trial = a_trial(host.send_tool(), server=old, checks=[a_check(protocol="h2")])
    failed = host.run_round(a_plan(trial)).only("trial_failed")
    assert failed["code"] == "wrong_protocol"
    assert "HTTP/1.1 instead of HTTP/2" in failed["message"]


def test_lost_rows_are_reported(host: AgentHost) -> None:
    load = a_load("{python}", "-c", "import sys; open(sys.argv[1], 'w').write('{}')", "{out}")
    assert fail(host, loads=[load])["code"] == "output_lost"


def test_unreadable_rows_are_reported(host: AgentHost) -> None:
    write = "import sys; [open(name, 'w').write('{}') for name in sys.argv[1:]]"
    load = a_load("{python}", "-c", write, "{out}", "{rows}")
    assert fail(host, loads=[load])["code"] == "output_lost"


def test_a_hanging_load_tool_ends_with_all_its_processes(host: AgentHost) -> None:
    hanging = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        "open(sys.argv[1], 'w').write(f'{os.getpid()} {child.pid}')\n"
        "time.sleep(300)"
    )
    load = a_load("{python}", "-c", hanging, "{trial_dir}/pids", wall_limit_s=5.0)
    step = host.run_round(a_plan(a_trial(host.send_tool(), loads=[load])))
    assert step.only("trial_failed")["code"] == "tool_failed"
    for pid in pids_in(step.folder / "trials/t1/pids", 2):
        assert not is_running(pid)


def failed_build(host: AgentHost, **changes: Any) -> Step:
    step = host.run_round(a_plan(a_trial(host.send_tool()), builds=[a_build(**changes)]))
    assert step.only("trial_failed")["code"] == "build_failed"
    assert step.only("trial_failed")["message"] == step.only("build_failed")["message"]
    assert not step.named("trial_done")
    return step


def test_the_output_of_a_failed_build_is_shown(host: AgentHost) -> None:
    make = ["{python}", "-c", "import sys; print('cc -O2'); sys.exit('undefined symbol')"]
    step = failed_build(host, steps=[make])
    assert "undefined symbol" in step.only("build_failed")["output"]
    assert "cc -O2" in (step.folder / "build-c0ffee-r.log").read_text()


def test_a_build_that_takes_too_long_is_ended(host: AgentHost) -> None:
    step = failed_build(
        host, steps=[["{python}", "-c", "import time; time.sleep(300)"]], timeout_s=0.5
    )
    assert "0.5 s" in step.only("build_failed")["message"]


def test_a_missing_program_of_a_build_is_reported(host: AgentHost) -> None:
    step = failed_build(host, steps=[["no-such-compiler"]])
    assert "no-such-compiler" in step.only("build_failed")["message"]


def test_a_missing_source_is_reported(host: AgentHost) -> None:
    (host.root / "sources/c0ffee.tar.gz").unlink()
    assert "c0ffee.tar.gz" in failed_build(host).only("build_failed")["message"]


def test_the_other_commit_is_measured_if_one_does_not_build(host: AgentHost) -> None:
    write_tar(host.root / "sources/bad.tar.gz", {"README": "no server here"})
    good, path = a_build(), host.send_tool()
    source = {"archive": "sources/bad.tar.gz"}
    bad = a_build(id="bad-r", commit="bad", source=source, tree="builds/bad-r", steps=[["false"]])
    trials = [a_trial(path, commit="bad", tree="builds/bad-r"), a_trial(path, id="t2")]
    step = host.run_round(a_plan(*trials, builds=[bad, good]))
    assert step.only("trial_failed")["trial"] == "t1"
    assert step.only("trial_done")["trial"] == "t2"


def test_a_round_that_wants_more_cpus_than_there_are_is_aborted(host: AgentHost) -> None:
    """They were there when the orchestrator planned it."""
    server = a_server(limits=limits(share="server"))
    shares = {"a": [{"name": "server", "cpus": 4096}]}
    step = host.run_round(a_plan(a_trial(host.send_tool(), server=server, shares=shares)))
    aborted = step.only("aborted")
    assert aborted["code"] == "internal"
    assert "want 4096 CPUs of one host" in aborted["reason"]


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="asks Linux's /proc")
def test_the_address_of_a_server_that_listens_elsewhere_is_reported(host: AgentHost) -> None:
    daemon = "os.fork() and os._exit(0); os.setsid()"
    elsewhere = "sys.argv[1] = '0'"
    extra = f"if 'daemon' in sys.argv: {daemon}\nif 'elsewhere' in sys.argv: {elsewhere}"
    host.send_source({"server.py": SERVER.format(extra=extra)})
    tool = host.send_tool()
    argv = ["{python}", "server.py", "{port}"]
    step = host.run_round(
        a_plan(
            a_trial(tool, id="t1", server=a_server(argv=[*argv, "daemon"])),
            a_trial(
                tool,
                id="t2",
                server=a_server(argv=[*argv, "elsewhere"]),
                ready=a_ready(timeout_s=1.0),
            ),
        )
    )
    daemon_failure, elsewhere_failure = step.named("trial_failed")
    assert "it became a daemon. Start it in the foreground" in daemon_failure["message"]
    assert "; it listens on 127.0.0.1:" in elsewhere_failure["message"]
    assert "let it listen on {bind} and {port}" in elsewhere_failure["message"]
