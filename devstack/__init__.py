"""The servers that `make demo`, `make run`, `make test` and `make check` start for developers."""
