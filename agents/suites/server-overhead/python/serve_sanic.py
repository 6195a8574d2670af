"""The four answers with Sanic's own server: serve_sanic.py BIND PORT."""

import sys

import work_async
from sanic import HTTPResponse, Sanic

app = Sanic("overhead", configure_logging=False)


def handler(make):
    async def answer(request):
        return HTTPResponse(await make(), content_type="text/plain")

    return answer


for path, make in work_async.ANSWERS.items():
    app.add_route(handler(make), path, name=path.strip("/"))

if __name__ == "__main__":
    address, port = sys.argv[1], int(sys.argv[2])
    app.run(address, port, single_process=True, access_log=False, motd=False, debug=False)
