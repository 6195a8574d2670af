"""A WSGI application with bjoern: serve_bjoern.py app_falcon BIND PORT."""

import importlib
import sys

import bjoern

if __name__ == "__main__":
    name, address, port = sys.argv[1:]
    bjoern.run(importlib.import_module(name).app, address, int(port))
