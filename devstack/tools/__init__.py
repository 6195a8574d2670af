"""Get load tools: `python -m devstack.tools oha ghz k6` prints the path of each.

It searches PITWALL_<NAME>, the user's cache and PATH, in this order. Otherwise oha is downloaded as
a release with a known SHA-256 or built by `cargo install`; the others are built by `go install`.
Downloads and builds go to the cache, for every checkout. wrk and h2load come from the packages of
each host.
"""
