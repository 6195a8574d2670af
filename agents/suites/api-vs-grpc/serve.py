"""Starts the HTTP side with the server of this commit: Hypercorn."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", required=True)
    options = parser.parse_args()
    program = str(Path(sys.executable).with_name("hypercorn"))
    os.execv(
        program,
        [
            *(program, "--config", "hypercorn.toml"),
            *("--bind", f"{options.bind}:{options.port}", "app:app"),
        ],
    )


if __name__ == "__main__":
    main()
