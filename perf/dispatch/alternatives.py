"""Alternatives to Pitwall: their command lines, and the files that they need."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perf.dispatch.workload import FILE_BYTES, Form, Work
from perf.harness.environments import build_alternatives_venv, read_version
from perf.harness.ssh_hosts import PYTHON, Fleet, SshHost

HERE = Path(__file__).resolve().parent

ANSIBLE_CONFIG = """\
[defaults]
inventory = {folder}/inventory.ini
forks = {count}
host_key_checking = True
home = {folder}/ansible
local_tmp = {folder}/ansible/tmp
[ssh_connection]
pipelining = True
ssh_args = -F {folder}/ssh_config -o ControlMaster=auto -o ControlPersist=60s
control_path_dir = {sockets}
"""

PLAYBOOK = """\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.copy: {src: "{{ source }}", dest: "{{ work_dir }}/{{ target }}"}
    - ansible.builtin.command: {argv: [test, -s, "{{ work_dir }}/{{ target }}"]}
"""

DEPLOY = """\
import os
from pyinfra import host
from pyinfra.operations import files, server
target = f"{host.data.work_dir}/{os.environ['TARGET']}"
files.put(src=os.environ["SOURCE"], dest=target)
server.shell(commands=[f"test -s {target}"])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """`argv(work, hosts, target)` is one invocation for these hosts.

    `target` names the file to create in each host's folder.
    """

    name: str
    version: str
    argv: Callable[[Work, Sequence[SshHost], str], list[str]]
    forms: tuple[Form, ...] = (Form.EACH, Form.BATCH)


class Alternatives:
    """The alternatives, set up for a fleet: inventories, configurations, a file of 1 MB."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self._fleet = fleet
        self._folder = folder
        self._programs = build_alternatives_venv()
        self._source = folder / "source.bin"
        self._source.write_bytes(os.urandom(FILE_BYTES))
        # Short, since the path of a socket must be short.
        self._sockets = folder / "s"
        self._write_files()

    def all(self) -> list[Alternative]:
        ssh = subprocess.run(["ssh", "-V"], capture_output=True, text=True).stderr.strip()
        each = (Form.EACH,)
        return [
            Alternative(name="ssh", version=ssh, argv=self._ssh, forms=each),
            Alternative(name="ssh, ControlMaster", version=ssh, argv=self._ssh_master, forms=each),
            Alternative(name="fabric", version=read_version("fabric"), argv=self._fabric),
            Alternative(name="pyinfra", version=read_version("pyinfra"), argv=self._pyinfra),
            Alternative(name="ansible", version=read_version("ansible-core"), argv=self._ansible),
        ]

    def environment(self) -> dict[str, str]:
        """Return the environment of every invocation; the user's own settings have no influence."""
        return {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "HOME": str(self._folder),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_CONFIG": str(self._folder / "ansible.cfg"),
            "SOURCE": str(self._source),
        }

    # Invocations

    def _ssh(self, work: Work, hosts: Sequence[SshHost], target: str) -> list[str]:
        return self._ssh_line([], work, hosts[0], target)

    def _ssh_master(self, work: Work, hosts: Sequence[SshHost], target: str) -> list[str]:
        options = ["-o", "ControlMaster=auto", "-o", "ControlPersist=60"]
        options += ["-o", f"ControlPath={self._sockets}/%n"]
        return self._ssh_line(options, work, hosts[0], target)

    def _ssh_line(self, options: list[str], work: Work, host: SshHost, target: str) -> list[str]:
        ssh = ["/usr/bin/ssh", "-F", str(self._folder / "ssh_config"), *options, host.name]
        if work is Work.EMPTY:
            return [*ssh, "true"]
        there = shlex.quote(f"{host.work_dir}/{target}")
        line = shlex.join([*ssh, f"cat >{there} && test -s {there}"])
        return ["/bin/sh", "-c", f"exec {line} <{shlex.quote(str(self._source))}"]

    def _fabric(self, work: Work, hosts: Sequence[SshHost], target: str) -> list[str]:
        places = [f"{host.user}@127.0.0.1:{host.port}={host.work_dir}" for host in hosts]
        program = [str(self._programs / "python"), str(HERE / "fabric_job.py")]
        return [*program, str(self._fleet.key_file), work, str(self._source), target, *places]

    def _pyinfra(self, work: Work, hosts: Sequence[SshHost], target: str) -> list[str]:
        pyinfra = [str(self._programs / "pyinfra"), "-y", str(self._inventory(hosts))]
        if work is Work.EMPTY:
            return [*pyinfra, "exec", "--", "true"]
        deploy = str(self._folder / "deploy.py")
        return ["/usr/bin/env", f"TARGET={target}", *pyinfra, deploy]

    def _ansible(self, work: Work, hosts: Sequence[SshHost], target: str) -> list[str]:
        wanted = hosts[0].name if len(hosts) == 1 else "all"
        if work is Work.EMPTY:
            program = str(self._programs / "ansible")
            return [program, wanted, "-m", "ansible.builtin.command", "-a", "true"]
        program = str(self._programs / "ansible-playbook")
        extra = ["-e", f"source={self._source}", "-e", f"target={target}"]
        return [program, "-l", wanted, *extra, str(self._folder / "copy.yml")]

    # Files

    def _inventory(self, hosts: Sequence[SshHost]) -> Path:
        name = hosts[0].name if len(hosts) == 1 else "all"
        return self._folder / f"pyinfra_{name}.py"

    def _write_files(self) -> None:
        hosts = self._fleet.hosts
        self._sockets.mkdir()
        (self._folder / "ssh_config").write_text(self._ssh_config())
        (self._folder / "inventory.ini").write_text(self._ansible_inventory())
        (self._folder / "ansible.cfg").write_text(
            ANSIBLE_CONFIG.format(folder=self._folder, sockets=self._sockets, count=len(hosts))
        )
        (self._folder / "copy.yml").write_text(PLAYBOOK)
        (self._folder / "deploy.py").write_text(DEPLOY)
        for group in (hosts, *((host,) for host in hosts)):
            self._inventory(group).write_text(f"hosts = {self._pyinfra_hosts(group)!r}\n")

    def _ssh_config(self) -> str:
        common = [
            f"IdentityFile {self._fleet.key_file}",
            f"UserKnownHostsFile {self._fleet.known_hosts}",
            "IdentitiesOnly yes",
            "BatchMode yes",
            "LogLevel ERROR",
        ]
        entries = [
            f"Host {host.name}\n  HostName 127.0.0.1\n  Port {host.port}\n  User {host.user}"
            for host in self._fleet.hosts
        ]
        return "\n".join([*entries, "Host *", *(f"  {line}" for line in common)]) + "\n"

    def _ansible_inventory(self) -> str:
        lines = [
            f"{host.name} work_dir={host.work_dir} ansible_python_interpreter={PYTHON}"
            for host in self._fleet.hosts
        ]
        return "\n".join(lines) + "\n"

    def _pyinfra_hosts(self, hosts: Sequence[SshHost]) -> list[tuple[str, dict[str, object]]]:
        return [
            (
                host.name,
                {
                    "ssh_hostname": "127.0.0.1",
                    "ssh_port": host.port,
                    "ssh_user": host.user,
                    "ssh_key": str(self._fleet.key_file),
                    "ssh_known_hosts_file": str(self._fleet.known_hosts),
                    "work_dir": str(host.work_dir),
                },
            )
            for host in hosts
        ]
