"""The four answers with socketify on uWebSockets: serve_socketify.py BIND PORT."""

import sys

import work
import work_async
from socketify import App, AppListenOptions


def handler(make):
    async def answer(response, request):
        body = await make()
        response.cork(lambda res: res.write_header("Content-Type", "text/plain").end(body))

    return answer


def nowhere(response, request):
    response.write_status(404).end(work.NOT_HERE)


if __name__ == "__main__":
    app = App()
    for path, make in work_async.ANSWERS.items():
        app.get(path, handler(make))
    app.any("/*", nowhere)
    app.listen(AppListenOptions(port=int(sys.argv[2]), host=sys.argv[1]), lambda config: None)
    app.run()
