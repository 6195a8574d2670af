"""The core of httpx, httpcore: tasks of one event loop that share one pool over HTTP/2."""

import asyncio
import ssl

import httpcore
from plan import Answer, Plan, now


def run(plan: Plan) -> list[list[Answer]]:
    return asyncio.run(_run(plan))


async def _run(plan: Plan) -> list[list[Answer]]:
    async with httpcore.AsyncConnectionPool(
        ssl_context=ssl.create_default_context(cafile=plan.authorities),
        max_connections=plan.tasks,
        max_keepalive_connections=plan.tasks,
        http2=True,
    ) as pool:
        return await asyncio.gather(*(_task(pool, plan) for _ in range(plan.tasks)))


async def _task(pool: httpcore.AsyncConnectionPool, plan: Plan) -> list[Answer]:
    waiting_s, connecting_s = plan.request_timeout_s, plan.connect_timeout_s
    timeout = {"connect": connecting_s, "read": waiting_s, "write": waiting_s, "pool": waiting_s}
    return [await _get(pool, plan.url, {"timeout": timeout}) for _ in range(plan.each)]


async def _get(pool: httpcore.AsyncConnectionPool, url: str, extensions: dict) -> Answer:
    start = now()
    answer = await pool.request("GET", url, extensions=extensions)
    size = len(answer.content)
    return Answer(start, now(), answer.status, size, answer.extensions["http_version"])
