"""Calls the library in a closed loop over one connection, and reports each request."""

import json
import sys
import time

from fetcher import Fetcher

options = json.loads(sys.argv[1])
client = Fetcher(options["address"], options["port"], options["request_timeout_s"])
began = time.monotonic()
left = options["requests"]
while left:
    start_s = time.monotonic() - began
    status, body = client.fetch(options["path"])
    line = {
        "type": "request",
        "start_s": start_s,
        "latency_us": (time.monotonic() - began - start_s) * 1e6,
        "ok": status == 200,
        "status": status,
        "bytes": len(body),
    }
    print(json.dumps(line))
    left -= start_s >= options["warmup_s"]
print(json.dumps({"type": "done"}))
