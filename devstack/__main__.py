"""`python -m devstack demo|seeds|run|manage|exec`: see `make help`."""

from __future__ import annotations

import argparse
import signal
import sys

from devstack.errors import DevstackError
from devstack.instance import hold_free_instance, hold_instance
from devstack.interrupts import StopRequested
from devstack.manage import manage
from devstack.places import CHECKOUT
from devstack.processes import Command
from devstack.stack import Stack, build_stack
from devstack.supervisor import print_message


def main() -> int:
    options = parse()
    try:
        if options.what == "exec":
            return execute(options)
        if options.what == "manage":
            return manage(options.name, options.argv)
        return serve(options)
    except DevstackError as error:
        print_message(str(error))
        return 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devstack", description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    demo = commands.add_parser("demo", help="start Pitwall and run the demo")
    demo.add_argument("--once", action="store_true", help="end after the first comparison")
    seeds = commands.add_parser("seeds", help="start Pitwall and reproduce the five reports")
    seeds.add_argument("--name", default="seeds", help="the instance, under .pitwall")
    seeds.add_argument("argv", nargs="*", metavar="ARG", help="of devstack.seeds, after --")
    serving = commands.add_parser("run", help="start Pitwall and leave it running")
    serving.add_argument("--name", default="demo", help="the instance, under .pitwall")
    managing = commands.add_parser("manage", help="run manage.py on the database of `run`")
    managing.add_argument("--name", default="demo", help="the instance, under .pitwall")
    managing.add_argument("argv", nargs="+", metavar="ARG", help="of manage.py, after --")
    execute = commands.add_parser("exec", help="run a command with PostgreSQL and Redis")
    execute.add_argument("--name", default="test", help="the instance, under .pitwall")
    execute.add_argument("--without-oha", action="store_true", help="do not get a load tool")
    execute.add_argument("argv", nargs="+", metavar="CMD")
    return parser.parse_args()


def execute(options: argparse.Namespace) -> int:
    """Run a command between the start and the stop of the servers; return its status."""
    with build_stack(hold_free_instance(options.name), careless=True) as stack:
        try:
            if not options.without_oha:
                # Tests that need it are skipped without it.
                stack.provide_tools(required=False)
            stack.start_servers()
            return run(stack, *options.argv)
        except StopRequested as request:
            return 128 + request.signum


def serve(options: argparse.Namespace) -> int:
    """Run all of Pitwall until it is stopped; seeds and --once end by themselves."""
    name = "demo" if options.what == "demo" else options.name
    with build_stack(hold_instance(name), careless=False) as stack:
        try:
            stack.provide_tools()
            stack.start_servers()
            url = stack.start_application()
            if options.what == "run":
                run(stack, sys.executable, str(CHECKOUT / "manage.py"), "setup_link")
                return wait_for_stop(stack, url)
            if options.what == "seeds":
                root = str(stack.instance.root)
                return run(stack, sys.executable, "-m", "devstack.seeds", root, *options.argv)
            status = run(stack, sys.executable, "-m", "devstack.demo", str(stack.instance.root))
            return status if options.once else wait_for_stop(stack, url, status)
        except StopRequested as request:
            return 128 + request.signum


def wait_for_stop(stack: Stack, url: str, status: int = 0) -> int:
    """Wait to be stopped. Ctrl-C is the normal end, and returns `status`."""
    print_message(f"Pitwall runs at {url} (logs: {stack.instance.root / 'logs'}). Ctrl-C stops it.")
    try:
        stack.supervisor.watch()
    except StopRequested as request:
        return status if request.signum == signal.SIGINT else 128 + request.signum
    return status


def run(stack: Stack, *argv: str) -> int:
    """Return the exit status of a command with our terminal, as a shell does."""
    status = stack.supervisor.run(Command(name="command", argv=argv, env=stack.env, cwd=CHECKOUT))
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main())
