"""What an instance keeps in its folder, and who may have it."""

import json
import os
import socket
import subprocess
import sys

import pytest

from devstack import instance
from devstack.instance import InstanceError, hold_free_instance, hold_instance


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setattr(instance, "STATE", tmp_path)
    return tmp_path


def test_the_secret_of_an_instance_is_private():
    held = hold_instance("demo")
    key = held.secret_key()
    assert len(key) > 40
    assert held.secret_key() == key
    assert (held.root / "secret_key").stat().st_mode & 0o777 == 0o600
    os.close(held.lock)


def test_an_instance_keeps_its_port_while_it_is_free():
    held = hold_instance("demo")
    port = instance.choose_port()
    (held.root / "port").write_text(str(port))
    assert held.port() == port
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        assert held.port() != port
    os.close(held.lock)


def test_a_second_start_reports_the_running_instance():
    held = hold_instance("demo")
    held.announce("http://127.0.0.1:8000")
    with pytest.raises(InstanceError, match=f"at http://127.0.0.1:8000 .process {os.getpid()}"):
        hold_instance("demo")
    os.close(held.lock)


def test_a_start_waits_for_processes_of_a_killed_instance(state):
    """The lock is held by a guard, and who took it is dead."""
    program = """
import subprocess, sys
from pathlib import Path
from devstack import instance
instance.STATE = Path(sys.argv[1])
held = instance.hold_instance("demo")
subprocess.Popen(["sleep", "0.5"], pass_fds=[held.lock], stdout=subprocess.DEVNULL)
"""
    subprocess.run([sys.executable, "-c", program, str(state)], check=True)
    assert json.loads((state / "demo" / "running.json").read_text())["pid"] != os.getpid()
    os.close(hold_instance("demo").lock)


def test_two_commands_have_separate_servers():
    first, second = hold_free_instance("test"), hold_free_instance("test")
    assert (first.name, second.name) == ("test", "test-2")
    os.close(first.lock)
    assert hold_free_instance("test").name == "test"
    os.close(second.lock)
