"""The core of niquests, urllib3-future: tasks that share one multiplexing pool over HTTP/2.

Each task requests AT_ONCE responses, reads them, and requests the next.
"""

import asyncio
import ssl

from plan import AT_ONCE, Answer, Plan, now
from urllib3 import HttpVersion, Timeout
from urllib3._async.connectionpool import AsyncHTTPSConnectionPool


def run(plan: Plan) -> list[list[Answer]]:
    return asyncio.run(_run(plan))


async def _run(plan: Plan) -> list[list[Answer]]:
    async with AsyncHTTPSConnectionPool(
        plan.host,
        plan.port,
        maxsize=plan.tasks,
        block=True,
        retries=False,
        timeout=Timeout(connect=plan.connect_timeout_s, read=plan.request_timeout_s),
        ssl_context=ssl.create_default_context(cafile=plan.authorities),
        disabled_svn={HttpVersion.h3},
    ) as pool:
        return await asyncio.gather(*(_task(pool, plan) for _ in range(plan.tasks)))


async def _task(pool: AsyncHTTPSConnectionPool, plan: Plan) -> list[Answer]:
    answers: list[Answer] = []
    while missing := plan.each - len(answers):
        answers += await _take(pool, plan, min(missing, AT_ONCE))
    return answers


async def _take(pool: AsyncHTTPSConnectionPool, plan: Plan, count: int) -> list[Answer]:
    asked = []
    for _ in range(count):
        start = now()
        asked.append((start, await pool.urlopen("GET", plan.path, multiplexed=True)))
    return [await _answer(pool, start, promise) for start, promise in asked]


async def _answer(pool: AsyncHTTPSConnectionPool, start: float, promise: object) -> Answer:
    answer = await pool.get_response(promise=promise)
    size = len(await answer.data)
    return Answer(start, now(), answer.status, size, answer.version)
