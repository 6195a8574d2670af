"""The four answers with aiohttp's own server: serve_aiohttp.py BIND PORT."""

import sys

import work_async
from aiohttp import web


def handler(make):
    async def answer(request):
        return web.Response(body=await make(), content_type="text/plain")

    return answer


app = web.Application()
app.add_routes([web.get(path, handler(make)) for path, make in work_async.ANSWERS.items()])

if __name__ == "__main__":
    web.run_app(app, host=sys.argv[1], port=int(sys.argv[2]), access_log=None, print=None)
