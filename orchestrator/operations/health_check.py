"""A container's health check: `python -m orchestrator.operations.health_check KIND [URL]`.

KIND is web, worker, background or beat. `URL` is the address of the web process, by default port
8000.

Exit status 0 if the process of this machine is alive. It loads no Django, since it runs often.
"""

import os
import socket
import sys
import urllib.request

from redis import RedisError

from orchestrator.database.redis_server import connect_redis_server
from orchestrator.operations.heartbeats import LATE_S, load_heartbeats

_PATIENCE_S = 4


def main() -> int:
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind not in ("web", "worker", "background", "beat"):
        print(__doc__)
        return 2
    problem = _check_web() if kind == "web" else _process(kind)
    if problem:
        print(problem)
    return 1 if problem else 0


def _check_web() -> str:
    url = sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:8000/healthz"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=_PATIENCE_S):
            return ""
    except OSError as error:
        return f"{url}: {error}"


def _process(kind: str) -> str:
    url = os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379/0"
    queue = os.environ.get("PITWALL_QUEUE") or "pitwall"
    machine = socket.gethostname()
    try:
        known = load_heartbeats(connect_redis_server(url), queue)
    except RedisError as error:
        # The fault is in Redis: a restart of this process would not help.
        print(f"Redis does not answer: {error}")
        return ""
    here = [each for each in known if each.kind == kind and each.machine == machine]
    if any(each.is_alive for each in here):
        return ""
    return f"no {kind} of {machine} sent a heartbeat within {LATE_S:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
