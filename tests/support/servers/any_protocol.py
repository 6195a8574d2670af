"""One small answer over HTTP/1.1, HTTP/2 and HTTP/3; started by the tests' own Python."""

import argparse
import asyncio
from pathlib import Path

from hypercorn.asyncio import serve
from hypercorn.config import Config

BODY = b"Hello, World!"


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": message["type"] + ".complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(BODY))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", required=True)
    parser.add_argument("--tls", choices=("true", "false"), required=True)
    parser.add_argument("--cert", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--alpn", default="h2,http/1.1")
    given = parser.parse_args()
    config = Config()
    config.bind = [f"127.0.0.1:{given.port}"]
    config.loglevel = "WARNING"
    config.alpn_protocols = given.alpn.split(",")
    if given.tls == "true":
        config.quic_bind = [f"127.0.0.1:{given.port}"]
        config.certfile, config.keyfile = str(given.cert), str(given.key)
    asyncio.run(serve(app, config))


if __name__ == "__main__":
    main()
