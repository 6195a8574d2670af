"""The four answers with Japronto: serve_japronto.py BIND PORT; Python 3.7."""

import sys

import work_async
from japronto import Application


def handler(make):
    async def answer(request):
        return request.Response(body=await make(), mime_type="text/plain")

    return answer


if __name__ == "__main__":
    app = Application()
    for path, make in work_async.ANSWERS.items():
        app.router.add_route(path, handler(make))
    app.run(sys.argv[1], int(sys.argv[2]), worker_num=1)
