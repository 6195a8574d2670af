"""The four answers with FastAPI, as an ASGI application."""

import work_async
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

app = FastAPI()


def endpoint(make):
    async def answer():
        return PlainTextResponse(await make())

    return answer


for path, make in work_async.ANSWERS.items():
    app.get(path)(endpoint(make))
