"""httpx: tasks of one event loop that share one client over HTTP/2."""

import asyncio
import ssl

import httpx
from plan import Answer, Plan, now


def run(plan: Plan) -> list[list[Answer]]:
    return asyncio.run(_run(plan))


async def _run(plan: Plan) -> list[list[Answer]]:
    async with httpx.AsyncClient(
        http2=True,
        trust_env=False,
        verify=ssl.create_default_context(cafile=plan.authorities),
        limits=httpx.Limits(max_connections=plan.tasks, max_keepalive_connections=plan.tasks),
        timeout=httpx.Timeout(plan.request_timeout_s, connect=plan.connect_timeout_s),
    ) as client:
        return await asyncio.gather(*(_task(client, plan) for _ in range(plan.tasks)))


async def _task(client: httpx.AsyncClient, plan: Plan) -> list[Answer]:
    return [await _get(client, plan) for _ in range(plan.each)]


async def _get(client: httpx.AsyncClient, plan: Plan) -> Answer:
    start = now()
    answer = await client.get(plan.url)
    size = len(answer.content)
    return Answer(start, now(), answer.status_code, size, answer.http_version)
