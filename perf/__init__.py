"""How fast Pitwall itself is: `make bench-<name>` runs `perf/<name>.py`."""
