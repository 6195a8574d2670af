"""Access to a machine: run a command, put a file, get a file, close."""
