"""Ten tasks, at most ten connections, 100 responses each: `client.py NAME` with one of the clients.

A load tool of Pitwall (docs/script-tool.md). The time begins before the client creates its TLS
context, with all authorities of a system, and ends when its pool is closed.
"""

import json
import statistics
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import certifi
from plan import SPOKEN, Answer, Plan, now


def main() -> None:
    name, asked = sys.argv[1], json.loads(sys.argv[-1])
    # Imported before the measured time.
    client = import_module(f"with_{name.replace('-', '_')}")
    plan = plan_of(asked)
    began = now()
    tasks: list[list[Answer]] = client.run(plan)
    delay_s = now() - began
    answers = [answer for task in tasks for answer in task]
    if len(answers) != asked["requests"]:
        sys.exit(f"{len(answers)} answers instead of {asked['requests']}")
    for answer in answers:
        tell(**line_of(answer, began))
    for spoken in sorted({SPOKEN.get(answer.version, "unknown") for answer in answers}):
        tell(type="protocol", spoken=spoken)
    for metric, value in readings(tasks, delay_s, began).items():
        tell(type="reading", metric=metric, value=value)
    tell(type="done", ended_s=delay_s)


def plan_of(asked: dict[str, Any]) -> Plan:
    each, rest = divmod(asked["requests"] or 0, asked["connections"])
    if rest or not each or not asked["tls"]:
        sys.exit("give a count of requests that the connections can share equally, and tls: true")
    return Plan(
        host=asked["address"].strip("[]"),
        port=asked["port"],
        path=asked["path"],
        tasks=asked["connections"],
        each=each,
        authorities=authorities(asked["ca"]),
        connect_timeout_s=asked["connect_timeout_s"],
        request_timeout_s=asked["request_timeout_s"],
    )


def authorities(ca: str) -> str:
    """Write all authorities of the system and that of this job to a file in the trial's folder."""
    bundle = Path("authorities.pem").resolve()
    bundle.write_text(Path(certifi.where()).read_text() + Path(ca).read_text())
    return str(bundle)


def line_of(answer: Answer, began: float) -> dict[str, Any]:
    return {
        "type": "request",
        "start_s": answer.start - began,
        "latency_us": (answer.end - answer.start) * 1e6,
        "ok": answer.status == 200 and answer.size > 0,
        "status": answer.status,
        "bytes": answer.size,
    }


def readings(tasks: list[list[Answer]], delay_s: float, began: float) -> dict[str, float]:
    """Return the report's metrics: delay to complete, throughput, and the time of each task."""
    first = min(answer.start for task in tasks for answer in task)
    last = max(answer.end for task in tasks for answer in task)
    spent = [max(each.end for each in task) - min(each.start for each in task) for task in tasks]
    return {
        "script.delay_s": delay_s,
        "script.throughput_per_s": sum(map(len, tasks)) / delay_s,
        "script.task_s": statistics.fmean(spent),
        "script.before_s": first - began,
        "script.after_s": delay_s - (last - began),
    }


def tell(**line: Any) -> None:
    print(json.dumps(line))


if __name__ == "__main__":
    main()
