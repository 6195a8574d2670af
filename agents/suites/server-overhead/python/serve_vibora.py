"""The four answers with Vibora: serve_vibora.py BIND PORT; Python 3.6."""

import sys

import work_async
from vibora import Request, Response, Vibora


def handler(make):
    async def answer(request: Request):
        return Response(await make(), headers={"Content-Type": "text/plain"})

    return answer


if __name__ == "__main__":
    app = Vibora()
    for path, make in work_async.ANSWERS.items():
        app.route(path)(handler(make))
    app.run(host=sys.argv[1], port=int(sys.argv[2]), workers=1, debug=False)
