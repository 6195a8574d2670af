"""`python -m devstack.tools [--quiet] NAME...`: see the package."""

from __future__ import annotations

import argparse
import sys

from devstack import tools
from devstack.tools.finding import find
from devstack.tools.messages import print_message
from devstack.tools.supplies import SUPPLIES, ToolError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devstack.tools", description=tools.__doc__)
    parser.add_argument("names", nargs="+", choices=list(SUPPLIES), metavar="NAME")
    parser.add_argument("--quiet", action="store_true", help="do not print the paths")
    options = parser.parse_args()
    failed = 0
    for name in options.names:
        try:
            path = find(SUPPLIES[name])
        except ToolError as error:
            print_message(str(error))
            failed = 1
        except KeyboardInterrupt:
            return 130
        else:
            if not options.quiet:
                print(path, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
