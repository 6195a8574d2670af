"""The last resort: ends what a supervisor started when the supervisor itself was killed.

Run by the supervisor as a process of its own session, with the seconds between asking and killing
as its argument and a pipe as standard input. Each line
says `+ GROUP SIGNAL` (a process group to end, and how), `- GROUP` (it has ended), `= JSON` (a
command to run at the end, as [argv, environment, folder]) or `=` (no such command any more). When
the pipe closes, its writer is gone: every group still listed is asked to end and then killed, and
the commands are run, the last one first. While it works it holds the descriptors that it
inherited, so that the lock of the instance stays taken.

Standard library only, and nothing of ours: it must not depend on anything that can change.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

COMMAND_TIMEOUT_S = 30.0
POLL_S = 0.05


def main() -> None:
    for unheard in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Not SIG_IGN, which the commands at the end would inherit.
        signal.signal(unheard, lambda signum, frame: None)
    groups: dict[int, int] = {}
    commands: list[tuple[list[str], dict[str, str], str]] = []
    for line in sys.stdin:
        if not line.endswith("\n"):
            # The writer died in the middle of it.
            break
        if line.startswith("="):
            commands = [*commands, json.loads(line[1:])] if line.strip() != "=" else []
        else:
            note(groups, line.split())
    end(groups, grace_s=float(sys.argv[1]))
    for argv, environment, folder in reversed(commands):
        run(argv, environment, folder)


def note(groups: dict[int, int], words: list[str]) -> None:
    if words[0] == "+":
        groups[int(words[1])] = int(words[2])
    else:
        groups.pop(int(words[1]), None)


def run(argv: list[str], environment: dict[str, str], folder: str) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(argv, env=environment, cwd=folder, timeout=COMMAND_TIMEOUT_S)


def end(groups: dict[int, int], *, grace_s: float) -> None:
    left = {group for group, how in groups.items() if send(group, how)}
    deadline = time.monotonic() + grace_s
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = {group for group in left if send(group, 0)}
    for group in left:
        send(group, signal.SIGKILL)


def send(group: int, signum: int) -> bool:
    """Whether the group still has members."""
    try:
        os.killpg(group, signum)
    except ProcessLookupError:
        return False
    except PermissionError:
        # macOS answers so for a group of which only zombies are left.
        return False
    return True


if __name__ == "__main__":
    main()
