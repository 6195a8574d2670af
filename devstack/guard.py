"""The last resort: ends the processes of a supervisor that was killed.

The supervisor runs it in a separate session, with a pipe as standard input. Its argument is the
number of seconds between SIGTERM and SIGKILL. Each line of the input is one of these:

- `+ GROUP SIGNAL`: a process group to end, and how
- `- GROUP`: the group has ended
- `= JSON`: a command to run at the end, as [argv, environment, folder]
- `=`: there is no such command any more

When the pipe closes, its writer is gone. Then the guard stops and finally kills every listed group,
and runs the commands, the last one first. Until then it holds the inherited descriptors, so that
the lock of the instance stays taken.

Standard library only, and no other module of ours: it must not depend on anything that can change.
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
            # The writer died in the middle of a line.
            break
        if line.startswith("="):
            commands = [*commands, json.loads(line[1:])] if line.strip() != "=" else []
        else:
            apply(groups, line.split())
    end(groups, grace_s=float(sys.argv[1]))
    for argv, environment, folder in reversed(commands):
        run(argv, environment, folder)


def apply(groups: dict[int, int], words: list[str]) -> None:
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
    """Send the signal. Return whether the group still has members."""
    try:
        os.killpg(group, signum)
    except ProcessLookupError:
        return False
    except PermissionError:
        # macOS returns EPERM for a group that has only zombies left.
        return False
    return True


if __name__ == "__main__":
    main()
