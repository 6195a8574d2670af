"""A RESTful server: `GET /messages/{size}` as JSON, in the content coding that the client requests.

It serializes and compresses the message for each response, at the level COMPRESSION_LEVEL.
Zstandard uses COMPRESSION_THREADS threads.
"""

import gzip
import os
from collections.abc import Callable

import brotli
import zstandard
from fastapi import FastAPI, HTTPException, Request, Response
from messages import SIZES, encoded, message

LEVEL = int(os.environ.get("COMPRESSION_LEVEL", "5"))
THREADS = int(os.environ.get("COMPRESSION_THREADS", "1"))
#: Zero compresses in the thread of the request, without others.
ZSTD_THREADS = THREADS if THREADS > 1 else 0
MESSAGES = {size: message(size) for size in SIZES}
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda body: bytes(brotli.compress(body, quality=LEVEL)),
    "gzip": lambda body: gzip.compress(body, LEVEL, mtime=0),
    "zstd": lambda body: zstandard.ZstdCompressor(level=LEVEL, threads=ZSTD_THREADS).compress(body),
}

app = FastAPI(openapi_url=None)


@app.get("/messages/{size}")
async def read_message(size: str, request: Request) -> Response:
    if size not in MESSAGES:
        raise HTTPException(404, f"there are the sizes {', '.join(MESSAGES)}")
    body = encoded(MESSAGES[size])
    headers = {"vary": "accept-encoding"}
    coding = coding_for(request.headers.get("accept-encoding", ""))
    if coding is not None:
        body = CODINGS[coding](body)
        headers["content-encoding"] = coding
    return Response(body, headers=headers, media_type="application/json")


def coding_for(accepted: str) -> str | None:
    """Return the first supported coding that the client accepts; None for no coding."""
    wanted = (each.partition(";")[0].strip().lower() for each in accepted.split(","))
    return next((each for each in wanted if each in CODINGS), None)
