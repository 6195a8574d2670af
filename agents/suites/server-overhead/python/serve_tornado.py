"""The four answers with Tornado's own server: serve_tornado.py BIND PORT."""

import asyncio
import sys

import work_async
from tornado.web import Application, RequestHandler


class Answer(RequestHandler):
    def initialize(self, make):
        self.make = make

    async def get(self):
        self.set_header("Content-Type", "text/plain")
        self.write(await self.make())


async def serve(address, port):
    routes = [(path, Answer, {"make": make}) for path, make in work_async.ANSWERS.items()]
    Application(routes, log_function=lambda handler: None).listen(port, address)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
