#!/usr/bin/env python3
"""A fake Python of a host: it answers each verb of the agent with the text of a test.

`hostile.json` of its work directory maps verbs to texts. `log` answers with a kilobyte more each
time, without end. Each call adds a line to `calls` at its start and at its end. `hostile.json` may
have "sleep_s" for each call, and "kill": a verb at which the worker is killed.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

words = sys.argv[sys.argv.index("--root") + 2 :]
verb = words[0]
lies = json.loads(Path("hostile.json").read_text())


def note(text: str) -> None:
    line = f"{text} {verb} {os.getppid()}\n".encode()
    calls = os.open("calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(calls, line)
    os.close(calls)


note("begin")
time.sleep(lies.get("sleep_s", 0))
if lies.get("kill") == verb:
    os.kill(os.getppid(), signal.SIGKILL)
if verb == "log" and "log" not in lies:
    offset = int(words[words.index("--offset") + 1])
    print(json.dumps({"offset": offset + 1, "text": "x" * 65_536}))
else:
    print(lies.get(verb, "{}"))
note("end")
