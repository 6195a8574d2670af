"""Both ends of the agent's protocols.

These are plans and archives for a host, its answers, the messages between hosts of a job, and the
responses of a measured server.
"""

import io
import json
import random
import socket
import tarfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agents.hostagent.builds.archive import unpack
from agents.hostagent.errors import AgentError, BadPlan, BuildFailed, PeerLost
from agents.hostagent.hosts.secure_channel import FOLLOWER, LEAD, Channel, Handshake
from agents.hostagent.http import grpc, http1, http2
from agents.hostagent.http.connection import Connection
from agents.hostagent.http.expectations import find_problem
from agents.hostagent.http.messages import Request, ResponseError
from agents.hostagent.step import journal
from agents.hostagent.step.plan import Check, Expected
from agents.hostagent.step.plan_parser import load_plan
from orchestrator.core.errors import HostError
from orchestrator.dispatch.agent import Agent
from orchestrator.dispatch.tools import locate_tool
from orchestrator.fleet.facts import compare_facts, extract_profile_fields, find_contradictions
from orchestrator.transport.base import CommandResult
from orchestrator.transport.fake import FakeTransport
from tests.agents.support import a_plan, a_search, a_step, a_trial, an_install
from tests.fuzz.inputs.mutation import changed_bytes, changed_json, changed_value
from tests.fuzz.inputs.target import Target

JOB, STEP = "0" * 8, "a1-r1"
_FACTS = {
    "hostname": "h", "system": "Linux", "machine": "x86_64", "os_name": "Debian", "cores": 2,
    "os_version": "12", "cpu_model": "Intel(R) Core(TM) i5", "threads": 4, "memory_bytes": 2**33,
    "clock_base_mhz": 1600, "clock_max_mhz": 3900.5, "fingerprint": "ab", "kernel": "6.1",
    "static": {"cpu_model": "i5", "threads": 4, "governor": None},
    "tools": {"oha": {"path": "/usr/bin/oha", "version": "1.16.0", "sha256": "ab"}, "wrk": None},
}  # fmt: skip
_EVENTS = [
    {"t": 1000.5, "event": "supervisor_started", "pid": 5},
    {"t": 1000.6, "event": "build_started", "build": "c0-r", "commit": "c0", "label": ""},
    {"t": 1000.7, "event": "build_done", "build": "c0-r", "commit": "c0", "seconds": 0.5,
     "cached": False, "installed": None},
    {"t": 1001.0, "event": "listening", "port": 4000},
    {"t": 1001.1, "event": "trial_started", "trial": "7b0e6a4e-7d9a-4c6e-8f5e-3a1b2c3d4e5f"},
    {"t": 1001.2, "event": "phase", "phase": "measuring", "quiet_s": 10.0},
    {"t": 1011.2, "event": "trial_done", "trial": "7b0e6a4e-7d9a-4c6e-8f5e-3a1b2c3d4e5f"},
    {"t": 1012.0, "event": "trial_failed", "trial": "7b0e6a4e-7d9a-4c6e-8f5e-3a1b2c3d4e5f",
     "code": "wrong_answer", "message": "x", "output": "y"},
    {"t": 1012.1, "event": "aborted", "code": "internal", "reason": "x"},
    {"t": 1012.2, "event": "round_done"},
]  # fmt: skip
_ANSWERS = {
    "status": {"alive": True, "started": True, "now": 1012.5, "offset": 900, "dropped": 0,
               "events": _EVENTS},
    "log": {"offset": 12, "text": "$ make\n"},
    "prepare": {"facts": _FACTS, "commits": {"c0": True}, "present": {"sources/x": False}},
    "facts": {"facts": _FACTS},
    "idle-check": {"interference": {"busy": 0.1, "top": []}},
    "commits": {"present": {"c0": True}},
    "has": {"present": {"tools/oha": True}},
    "error": {"error": {"code": "busy", "message": "another step holds it"}},
}  # fmt: skip


def _plans() -> list[bytes]:
    trial = a_trial("tools/fake")
    searching = a_trial("tools/fake", search=a_search(("latency.p99", "<", 0.05)))
    plans = (
        a_plan(trial),
        a_plan(searching, builds=[an_install(steps=[["make", "x"]], files=["a.txt"])]),
        a_plan(trial, hosts={"a": {"address": "10.0.0.1", "port": None},
                             "b": {"address": "10.0.0.2", "port": 9}}, secret="ab" * 32),
        a_plan(a_trial("tools/fake", prepare=[a_step("pass")], files={"files/a/b.txt": "ab"}),
               texts={"ab": "text"}),
        a_plan(tls={"ca": "pem", "cert": None, "key": None}, tuning={"governor": "performance"}),
    )  # fmt: skip
    return [json.dumps(plan).encode() for plan in plans]


def _read_plan(given: bytes, folder: Path) -> None:
    path = folder / "plan.json"
    path.write_bytes(given)
    plan = load_plan(path, folder)
    for trial in plan.trials:
        trial.cpus_on(plan.me, with_tool=True)
        plan.address(trial.server.on)


def _journals() -> list[bytes]:
    return [b"".join(json.dumps(each).encode() + b"\n" for each in _EVENTS)]


def _read_journal(given: bytes, folder: Path) -> None:
    """As after a supervisor that was killed while it wrote."""
    path = folder / "journal.jsonl"
    path.write_bytes(given)
    events, offset = journal.read_from(path, 0)
    assert offset <= len(given)
    json.dumps(events)
    journal.Journal(path).close()


def _archives() -> list[bytes]:
    archives = []
    for mode in ("w", "w:gz", "w:xz"):
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode=mode) as archive:
            _add(archive)
        archives.append(whole.getvalue())
    return archives


def _add(archive: tarfile.TarFile) -> None:
    for name, kind, link in (
        ("src", tarfile.DIRTYPE, ""), ("src/run.sh", tarfile.REGTYPE, ""),
        ("src/alias", tarfile.SYMTYPE, "../deep/er/plain.txt"),
        ("deep/er/plain.txt", tarfile.REGTYPE, ""), ("up", tarfile.SYMTYPE, "src/../deep"),
        ("ü" * 120, tarfile.REGTYPE, ""),
    ):  # fmt: skip
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        member.size = 40 if member.isfile() else 0
        archive.addfile(member, io.BytesIO(b"t" * 40) if member.isfile() else None)


def _change_archive(chance: random.Random, sample: bytes, others: Sequence[bytes]) -> bytes:
    """Half of the time, return a header with a correct checksum."""
    if sample[:2] != b"\x1f\x8b" and b"ustar" in sample[:512] and chance.random() < 0.6:
        return _with_sums(changed_bytes(chance, sample, _PARTS))
    return changed_bytes(chance, sample, others)


_PARTS = (
    b"../../evil",
    b"/tmp/evil",
    b"0000644",
    b"1",
    b"2",
    b"5",
    b"L",
    b"x",
    b"S",
    b"77777777777",
)


def _with_sums(data: bytes) -> bytes:
    blocks = bytearray(data)
    for at in range(0, len(blocks) - 511, 512):
        if blocks[at + 257 : at + 262] == b"ustar":
            blocks[at + 148 : at + 156] = b" " * 8
            blocks[at + 148 : at + 156] = b"%06o\0 " % sum(blocks[at : at + 512])
    return bytes(blocks)


def _unpack(given: bytes, folder: Path) -> None:
    source, target = folder / "c0.tar.gz", folder / "tree"
    source.write_bytes(given)
    unpack(source, target)


def _list_answers() -> list[Any]:
    return list(_ANSWERS.items())


def _change_answer(chance: random.Random, sample: Any, _: Sequence[Any]) -> Any:
    verb, answer = sample
    changed = changed_value(chance, answer)
    data = json.dumps(changed).encode()
    return verb, changed_bytes(chance, data, [data]) if chance.random() < 0.3 else data


def _ask(given: Any, _: Path) -> None:
    """Ask each verb of a host with these answers; the results must be storable."""
    verb, answer = given
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    transport = FakeTransport()
    transport.answer(("python3",), CommandResult(exit_status=0, stdout=data, stderr=b""))
    agent = Agent(transport, python="python3")
    if verb in ("status", "error"):
        _storable(agent.status(JOB, STEP, 0))
    elif verb == "log":
        _storable(list(agent.log(JOB, STEP, "b", 0)))
    elif verb == "prepare":
        reply = agent.ready(repository="p", commits=["c0"], paths=[])
        assert isinstance(reply.commits.get("c0", False), bool)
        _read_facts(reply.facts)
    elif verb == "facts":
        _read_facts(agent.facts().facts)
    elif verb == "idle-check":
        _storable(agent.check_idle())
    else:
        agent.commits("p", "c0")
        agent.has("tools/oha")


def _storable(value: Any) -> None:
    """PostgreSQL stores no NUL, no lone surrogate, and no number that is not finite."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    assert "\\u0000" not in text, "a NUL comes through"


def _read_facts(facts: Any) -> None:
    _storable(facts)
    extract_profile_fields(facts)
    compare_facts(_FACTS, facts)
    compare_facts(facts, _FACTS)
    find_contradictions({**extract_profile_fields(_FACTS), "cores": 3}, facts)
    for name in ("oha", "wrk"):
        locate_tool(name, facts)


def _talks() -> list[bytes]:
    return [b'{"nonce": "ab"}\n{"proof": "cd"}\n' + b"0" * 64 + b' {"call": "ping"}\n']


def _listen(role: str, given: bytes, _: Path) -> None:
    """A caller without the secret sends arbitrary data, and then arbitrary data over a channel."""
    handshake = Handshake("ab" * 32, "j/s/a", role)
    lines = given.split(b"\n")
    refused: PeerLost | None = None
    try:
        handshake.read_greeting(lines[0])
        handshake.check(lines[-2] if len(lines) > 1 else b"")
        raise AssertionError("somebody got in without the secret")
    except PeerLost as error:
        refused = error
    here, there = socket.socketpair()
    with here, there:
        there.sendall(given[:60_000])
        there.shutdown(socket.SHUT_WR)
        channel = Channel(here, b"k" * 32, b"l" * 32)
        if channel.receive(0) is not None:
            raise AssertionError("a message of a stranger was taken")
    raise refused


def _http1_answers() -> list[bytes]:
    return [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.0 404 Not Found\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nno",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 25\r\n\r\n"
        + bytes.fromhex("1f8b0800000000000003cb48cdc9c9070086a6103605000000"),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    ]  # fmt: skip


def _http2_answers() -> list[bytes]:
    settings = bytes.fromhex("000000040000000000")
    headers = bytes.fromhex("000001010400000001") + b"\x88"  # :status 200
    data = bytes.fromhex("000005000100000001") + b"hello"
    kind = b"\x5f\x10application/grpc"
    status = b"\x00\x0bgrpc-status\x01" + b"0"
    called = (
        bytes((0, 0, 1 + len(kind), 1, 4, 0, 0, 0, 1)) + b"\x88" + kind
        + bytes((0, 0, 7, 0, 0, 0, 0, 0, 1)) + b"\0\0\0\0\2hi"
        + bytes((0, 0, len(status), 1, 5, 0, 0, 0, 1)) + status
    )  # fmt: skip
    goaway = bytes.fromhex("000008070000000000") + bytes(8)
    reset = bytes.fromhex("000004030000000001") + bytes(4)
    return [
        settings + headers[:4] + b"\x05" + headers[5:], settings + headers + data,
        settings + called, settings + goaway, settings + headers + reset, _http1_answers()[0],
    ]  # fmt: skip


def _send_request(speaker: Any, given: bytes, _: Path) -> None:
    """The agent requests a server with these responses, and judges them."""
    here, there = socket.socketpair()
    with here, there:
        there.sendall(given[:60_000])
        there.shutdown(socket.SHUT_WR)
        line = Connection(here, time.monotonic() + 20)
        question = Request("127.0.0.1:1", "GET", "/", (("accept-encoding", "gzip"),), None)
        answer = speaker.send_request(line, question)
    json.dumps([find_problem(_check(expected), answer) for expected in _EXPECTED])


#: A pattern is searched for by a separate process, which may be killed.
_EXPECTED = (None, Expected("text", "hello"), Expected("length", 5), Expected("sha256", "ab"))


def _check(expected: Expected | None) -> Check:
    return Check(
        name="x", method="GET", path="/", headers=(), body=None, protocol="h1", tls=False,
        timeout_s=5, argv=None, statuses=(200,), response_headers={"content-type": "text/plain"},
        response=expected, encoding=None, grpc_status=0,
    )  # fmt: skip


TARGETS = (
    Target(name="agent-plan", samples=_plans, change=changed_json, read=_read_plan,
           errors=(BadPlan,), share=4),
    Target(name="agent-journal", samples=_journals, change=changed_bytes, read=_read_journal,
           errors=(AgentError,), share=3),
    Target(name="agent-archive", samples=_archives, change=_change_archive, read=_unpack,
           errors=(BuildFailed,), share=2),
    Target(name="agent-answers", samples=_list_answers, change=_change_answer, read=_ask,
           errors=(HostError,), share=6),
    Target(name="agent-lead", samples=_talks, change=changed_json, read=partial(_listen, LEAD),
           errors=(PeerLost,), share=2),
    Target(name="agent-follower", samples=_talks, change=changed_bytes,
           read=partial(_listen, FOLLOWER), errors=(PeerLost,), share=2),
    Target(name="agent-http1", samples=_http1_answers, change=changed_bytes,
           read=partial(_send_request, http1), errors=(OSError, ResponseError), share=3),
    Target(name="agent-http2", samples=_http2_answers, change=changed_bytes,
           read=partial(_send_request, http2), errors=(OSError, ResponseError), share=2),
    Target(name="agent-grpc", samples=_http2_answers, change=changed_bytes,
           read=partial(_send_request, grpc), errors=(OSError, ResponseError), share=2),
)  # fmt: skip
