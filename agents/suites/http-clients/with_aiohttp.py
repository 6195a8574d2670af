"""aiohttp: tasks of one event loop that share one session over HTTP/1.1."""

import asyncio
import ssl

import aiohttp
from plan import Answer, Plan, now


def run(plan: Plan) -> list[list[Answer]]:
    return asyncio.run(_run(plan))


async def _run(plan: Plan) -> list[list[Answer]]:
    connector = aiohttp.TCPConnector(
        limit=plan.tasks, ssl=ssl.create_default_context(cafile=plan.authorities)
    )
    timeout = aiohttp.ClientTimeout(
        total=plan.request_timeout_s, sock_connect=plan.connect_timeout_s
    )
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        return await asyncio.gather(*(_task(session, plan) for _ in range(plan.tasks)))


async def _task(session: aiohttp.ClientSession, plan: Plan) -> list[Answer]:
    return [await _get(session, plan) for _ in range(plan.each)]


async def _get(session: aiohttp.ClientSession, plan: Plan) -> Answer:
    start = now()
    async with session.get(plan.url) as answer:
        size = len(await answer.read())
    version = answer.version
    return Answer(start, now(), answer.status, size, version and version.major * 10 + version.minor)
