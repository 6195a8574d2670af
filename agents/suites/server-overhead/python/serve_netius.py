"""A WSGI application with netius: serve_netius.py app_falcon BIND PORT."""

import importlib
import logging
import sys

import netius.servers

if __name__ == "__main__":
    name, address, port = sys.argv[1:]
    server = netius.servers.WSGIServer(importlib.import_module(name).app, level=logging.WARNING)
    server.serve(host=address, port=int(port))
