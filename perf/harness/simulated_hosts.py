"""Many simulated hosts in one process: `python -m perf.harness.simulated_hosts FOLDER QUIET_S`.

A real SSH server (paramiko) on loopback answers the verbs of the agent, with a connection for each
host. Each address of 127.0.0.0/8 is one host. There is no build and no load: the supervisor of a
job reports a phase of QUIET_S seconds, and the next one when it is polled. `polls` in FOLDER gets a
line for each poll of a supervisor: the seconds that it came after the end of its phase.
"""

from __future__ import annotations

import json
import random
import re
import shlex
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

import paramiko

from agents.hostagent.platform.facts import gather_facts
from perf.harness.simulated_files import SimulatedFiles

#: Programs whose answer is sent at the same time.
ANSWERS_AT_ONCE = 16
#: Seconds until a program answers: a real host starts Python.
ANSWER_S = 0.02
#: Seconds after which the thread of an idle connection wakes, as in `transport/connection.py`.
READ_TIMEOUT_S = 5.0
#: The file that names the port once the server listens.
PORT, POLLS, KEY = "port", "polls", "host_key"
_SCRIPT = re.compile(r'printf %b "([^"]*)"')
_OCTAL = re.compile(r"\\0([0-7]{3})")


class SimulatedHosts:
    """The state of all hosts. `polls` gets a line for each poll of a supervisor."""

    def __init__(self, polls: TextIO, quiet_s: float) -> None:
        with tempfile.TemporaryDirectory() as root:
            self._facts = gather_facts(Path(root))
        self._polls = polls
        self._quiet_s = quiet_s
        #: By address and job: when the present phase ends.
        self._phase_ends: dict[tuple[str, str], float] = {}

    def answer(self, address: str, words: Sequence[str]) -> dict[str, Any]:
        """Return the answer of the agent to a verb."""
        verb, *rest = words
        if verb == "status":
            return self._report_status(address, rest[0])
        if verb == "prepare":
            return self._prepare(address, _read_lists(rest))
        if verb in ("has", "commits"):
            return {"present": dict.fromkeys(rest, False)}
        return {"pid": 1}

    def _prepare(self, address: str, lists: Mapping[str, list[str]]) -> dict[str, Any]:
        own = dict.fromkeys(("machine_id", "boot_id", "installation_id"), address)
        return {
            "stopped": [],
            "facts": {**self._facts, **own, "hostname": address},
            "commits": dict.fromkeys(lists.get("--commits", []), True),
            "present": dict.fromkeys(lists.get("--paths", []), True),
            "reservation": None,
        }

    def _report_status(self, address: str, job: str) -> dict[str, Any]:
        now = time.time()
        ended_at = self._phase_ends.get((address, job))
        # The polls of the hosts are spread over the first phase.
        quiet_s = self._quiet_s if ended_at is not None else random.uniform(0, self._quiet_s)
        events = []
        if ended_at is None or now >= ended_at:
            self._phase_ends[address, job] = now + quiet_s
            events.append({"t": now, "event": "phase", "phase": "measuring", "quiet_s": quiet_s})
        if ended_at is not None:
            self._polls.write(f"{now:.3f} {now - ended_at:.3f}\n")
        return {
            "alive": True, "started": True, "now": now, "offset": 1, "dropped": 0,
            "beat_age_s": 0.1, "idle_s": 0.1, "events": events,
        }  # fmt: skip


class Server(paramiko.ServerInterface):
    """One connection: it logs everybody in and answers programs."""

    def __init__(self, hosts: SimulatedHosts, address: str, pool: ThreadPoolExecutor) -> None:
        self._hosts, self._address, self._pool = hosts, address, pool

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return paramiko.common.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._pool.submit(self._execute, channel, command.decode())
        return True

    def _execute(self, channel: paramiko.Channel, line: str) -> None:
        time.sleep(ANSWER_S)
        answer = json.dumps(self._hosts.answer(self._address, parse_verb(line)))
        channel.sendall(f"pitwall-pid 1\n{answer}".encode())
        channel.send_exit_status(0)
        channel.close()


def parse_verb(line: str) -> list[str]:
    """Return the verb and its words of a command line that calls the agent."""
    match = _SCRIPT.search(line)
    if match is None:
        raise ValueError(f"no command of Pitwall: {line}")
    script = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), match[1])
    words = shlex.split(script.rpartition("; exit")[0].removesuffix(" </dev/null"))
    return words[words.index("--root") + 2 :]


def _read_lists(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the values after each option."""
    lists: dict[str, list[str]] = {}
    option = ""
    for word in words:
        if word.startswith("--"):
            option = word
        lists.setdefault(option, []).extend([] if word == option else [word])
    return lists


def serve(folder: Path, quiet_s: float) -> None:
    """Serve until the process is ended."""
    # paramiko has no other way to set it.
    paramiko.Transport._active_check_timeout = READ_TIMEOUT_S  # type: ignore[attr-defined]
    key = paramiko.Ed25519Key.from_private_key_file(str(folder / KEY))
    pool = ThreadPoolExecutor(ANSWERS_AT_ONCE)
    with (
        (folder / POLLS).open("a", buffering=1) as polls,
        socket.create_server(("0.0.0.0", 0), backlog=1024) as listener,
    ):
        hosts = SimulatedHosts(polls, quiet_s)
        (folder / PORT).write_text(str(listener.getsockname()[1]))
        while True:
            connection, _ = listener.accept()
            _begin_session(connection, key, hosts, pool)


def _begin_session(
    connection: socket.socket,
    key: paramiko.PKey,
    hosts: SimulatedHosts,
    pool: ThreadPoolExecutor,
) -> None:
    address = connection.getsockname()[0]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    session = paramiko.Transport(connection)
    session.add_server_key(key)
    session.set_subsystem_handler("sftp", paramiko.SFTPServer, sftp_si=SimulatedFiles)
    session.start_server(event=threading.Event(), server=Server(hosts, address, pool))


if __name__ == "__main__":
    serve(Path(sys.argv[1]), float(sys.argv[2]))
