"""The core of requests, urllib3: threads that share one pool."""

import ssl
from concurrent.futures import ThreadPoolExecutor

from plan import Answer, Plan, now
from urllib3 import HTTPSConnectionPool, Timeout


def run(plan: Plan) -> list[list[Answer]]:
    pool = HTTPSConnectionPool(
        plan.host,
        plan.port,
        maxsize=plan.tasks,
        block=True,
        retries=False,
        timeout=Timeout(connect=plan.connect_timeout_s, read=plan.request_timeout_s),
        ssl_context=ssl.create_default_context(cafile=plan.authorities),
    )
    with pool, ThreadPoolExecutor(plan.tasks) as threads:
        return list(threads.map(lambda _: _task(pool, plan), range(plan.tasks)))


def _task(pool: HTTPSConnectionPool, plan: Plan) -> list[Answer]:
    return [_get(pool, plan) for _ in range(plan.each)]


def _get(pool: HTTPSConnectionPool, plan: Plan) -> Answer:
    start = now()
    answer = pool.request("GET", plan.path)
    size = len(answer.data)
    return Answer(start, now(), answer.status, size, answer.version)
