"""An SSH server with a hostile SFTP; it is started like `asyncssh_server.py`.

PITWALL_TEST_HOSTILE: `long` answers each read with four megabytes, `slow` with one byte after a
delay.
"""

import asyncio
import json
import os
import sys
from typing import Any

import asyncssh
import asyncssh_server

SIZE = 1024 * 1024


class HostileSftp(asyncssh.SFTPServer):
    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        return object()

    def fstat(self, file_obj: object) -> asyncssh.SFTPAttrs:
        return asyncssh.SFTPAttrs(size=SIZE)

    async def read(self, file_obj: object, offset: int, size: int) -> bytes:
        if os.environ["PITWALL_TEST_HOSTILE"] == "long":
            return b"x" * 4 * SIZE
        await asyncio.sleep(0.5)
        return b"x"

    def close(self, file_obj: object) -> None:
        pass


async def serve(config: dict[str, Any]) -> None:
    asyncssh_server.asyncssh.create_server = _with_hostile_sftp
    await asyncssh_server.serve(config)


_create_server = asyncssh.create_server


async def _with_hostile_sftp(*words: Any, **options: Any) -> Any:
    return await _create_server(*words, **{**options, "sftp_factory": HostileSftp})


if __name__ == "__main__":
    asyncio.run(serve(json.load(sys.stdin)))
