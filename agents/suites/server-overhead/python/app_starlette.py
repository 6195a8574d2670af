"""The four answers with Starlette, as an ASGI application."""

import work_async
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


def endpoint(make):
    async def answer(request):
        return PlainTextResponse(await make())

    return answer


app = Starlette(routes=[Route(path, endpoint(make)) for path, make in work_async.ANSWERS.items()])
