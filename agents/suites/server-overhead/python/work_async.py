"""The work of a request, as in work.py, for servers on an event loop; from Python 3.6 on."""

import asyncio

import work

#: uvloop does not sleep for a shorter time, and would then burn CPU.
SHORTEST_S = 0.001


async def hello():
    return work.HELLO


async def megabyte():
    return work.MEGABYTE


async def burn():
    for _ in range(work.STEPS):
        work.burn_step()
        await asyncio.sleep(0)
    return work.BURNED


async def sleep():
    start = work.now()
    for step in range(1, work.STEPS + 1):
        left = work.left(start, step)
        if left > 0:
            await asyncio.sleep(max(SHORTEST_S, left))
    return work.SLEPT


#: The function for the body of a path.
ANSWERS = {"/hello": hello, "/burn": burn, "/sleep": sleep, "/mb": megabyte}
