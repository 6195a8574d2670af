"""A program under test: supervises three dummies as its arguments say. Run as a process.

`argv`: folder, name of a mode. The dummies note in `folder/events` when they are asked to end.
"""

import sys
from pathlib import Path

from devstack.errors import DevstackError
from devstack.filelock import try_lock
from devstack.interrupts import StopRequested
from devstack.processes import Command, Service
from devstack.supervisor import Supervisor

ENV = {"PATH": "/usr/bin:/bin"}
# A leader with a child in its group, as a web server or a worker pool has.
OBEDIENT = """
import os, signal, sys, time
name, folder = sys.argv[1:]
note = lambda text: open(f"{folder}/events", "a").write(f"{name} {text}\\n")
def end(*args):
    note("ends")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(f"{folder}/{name}.child", "w").write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists(f"{folder}/{name}.child") or not open(f"{folder}/{name}.child").read():
    time.sleep(0.01)
open(f"{folder}/{name}.pid", "w").write(str(os.getpid()))
time.sleep(600)
"""
STUBBORN = OBEDIENT.replace("    os._exit(0)\n", "")
SHORT_LIVED = "import sys; print('I give up'); sys.exit(3)"


def service(folder: Path, name: str, program: str = OBEDIENT, restarts: int = 0) -> Service:
    command = Command(
        name=name,
        argv=(sys.executable, "-c", program, name, str(folder)),
        env=ENV,
        cwd=folder,
        log=folder / "logs" / f"{name}.log",
    )
    ready = (folder / f"{name}.pid").exists if program != SHORT_LIVED else lambda: False
    return Service(command=command, ready=ready, restarts=restarts)


def note(folder: Path, text: str) -> Command:
    program = f"open({str(folder / 'events')!r}, 'a').write('{text}\\n')"
    return Command(name=text, argv=(sys.executable, "-c", program), env=ENV, cwd=folder)


def main() -> int:
    folder, mode = Path(sys.argv[1]), sys.argv[2]
    lock = try_lock(folder / "lock")
    assert lock is not None
    with Supervisor(keep_open=[lock], guard_grace_s=0.5) as supervisor:
        try:
            supervisor.start(service(folder, "first"))
            supervisor.on_stop(note(folder, "closing"))
            supervisor.start(
                service(folder, "second", STUBBORN if mode == "stubborn" else OBEDIENT)
            )
            if mode == "short-lived":
                supervisor.start(service(folder, "third", SHORT_LIVED))
            if mode == "command":
                return supervisor.run(note(folder, "command")) + 5
            supervisor.start(service(folder, "third", restarts=1))
            (folder / "up").touch()
            supervisor.watch()
        except StopRequested as request:
            return 128 + request.signum
        except DevstackError as error:
            print(error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
