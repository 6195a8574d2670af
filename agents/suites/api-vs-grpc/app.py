"""The HTTP side: `GET /cities/random?num=500` answers one of the 500 largest cities as JSON.

REDIS_URL=redis://127.0.0.1:6379 uvicorn app:app --port 8080
"""

import os
from contextlib import asynccontextmanager
from typing import Annotated

from cities import Cities
from fastapi import FastAPI, Query

cities = Cities(os.environ["REDIS_URL"])


@asynccontextmanager
async def lifespan(_app):
    await cities.load()
    yield
    await cities.close()


app = FastAPI(openapi_url=None, lifespan=lifespan)


@app.get("/cities/random")
async def random_city(
    num: Annotated[int, Query(ge=1, le=9999)] = 1,
) -> dict[str, str | int | float]:
    return await cities.random_one(num)


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}
