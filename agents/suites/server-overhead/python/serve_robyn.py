"""The four answers with Robyn: serve_robyn.py BIND PORT."""

import sys

import work_async
from robyn import Response, Robyn

app = Robyn(__file__)


def handler(make):
    async def answer(request):
        body = await make()
        return Response(status_code=200, headers={"Content-Type": "text/plain"}, description=body)

    return answer


for path, make in work_async.ANSWERS.items():
    app.get(path)(handler(make))

if __name__ == "__main__":
    address, port = sys.argv[1], int(sys.argv[2])
    app.start(host=address, port=port)
