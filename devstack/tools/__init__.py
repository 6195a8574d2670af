"""Getting load tools: `python -m devstack.tools oha ghz k6` prints the path of each.

Looked for in this order: PITWALL_<NAME>, the user's cache, PATH; then got: oha as a release whose
SHA-256 is known or by `cargo install`, the others by `go install`. What is downloaded or built goes
to the cache, for every checkout. wrk and h2load come from the packages of each host.
"""
