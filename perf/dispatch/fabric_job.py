"""The job as a user of Fabric would write it: `fabric_job.py KEY WORK SOURCE TARGET HOST...`.

It runs with the Python of the alternatives. HOST is `user@address:port=folder of its files`; each
host has a thread.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from fabric import Connection


def main() -> None:
    key, work, source, target, *places = sys.argv[1:]
    with ThreadPoolExecutor(len(places)) as pool:
        list(pool.map(lambda place: carry_out(key, work, source, target, place), places))


def carry_out(key: str, work: str, source: str, target: str, place: str) -> None:
    host, _, folder = place.partition("=")
    login = {"key_filename": key, "look_for_keys": False, "allow_agent": False}
    with Connection(host, connect_kwargs=login) as connection:
        if work == "copy":
            connection.put(source, f"{folder}/{target}")
            connection.run(f"test -s {folder}/{target}", hide=True)
        else:
            connection.run("true", hide=True)


main()
