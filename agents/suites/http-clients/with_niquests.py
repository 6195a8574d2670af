"""niquests: tasks of one event loop that share one multiplexing session over HTTP/2.

Each task requests AT_ONCE responses, gathers them, and requests the next.
"""

import asyncio

import niquests
from plan import AT_ONCE, Answer, Plan, now


def run(plan: Plan) -> list[list[Answer]]:
    return asyncio.run(_run(plan))


async def _run(plan: Plan) -> list[list[Answer]]:
    async with niquests.AsyncSession(
        multiplexed=True, disable_http3=True, pool_connections=1, pool_maxsize=plan.tasks
    ) as session:
        session.trust_env = False
        session.verify = plan.authorities
        return await asyncio.gather(*(_task(session, plan) for _ in range(plan.tasks)))


async def _task(session: niquests.AsyncSession, plan: Plan) -> list[Answer]:
    answers: list[Answer] = []
    while missing := plan.each - len(answers):
        answers += await _gather(session, plan, min(missing, AT_ONCE))
    return answers


async def _gather(session: niquests.AsyncSession, plan: Plan, count: int) -> list[Answer]:
    timeout = (plan.connect_timeout_s, plan.request_timeout_s)
    asked = []
    for _ in range(count):
        start = now()
        asked.append((start, await session.get(plan.url, timeout=timeout)))
    await session.gather(*(answer for _, answer in asked))
    return [_answer(start, answer) for start, answer in asked]


def _answer(start: float, answer: niquests.Response) -> Answer:
    size = len(answer.content or b"")
    return Answer(start, now(), answer.status_code or 0, size, answer.http_version)
