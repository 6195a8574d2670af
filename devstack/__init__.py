"""What `make demo`, `make run`, `make test` and `make check` start on a developer's machine."""
