import argparse
from string import Template

from framework import serve

PAGES = {
    "/": lambda: "ready",
    "/plain": lambda: "Hello, World!",
    "/template": lambda: Template("Hello, $name!").substitute(name="Ada"),
}
parser = argparse.ArgumentParser()
parser.add_argument("--bind")
parser.add_argument("--port", type=int)
given = parser.parse_args()
serve(given.bind, given.port, PAGES)
