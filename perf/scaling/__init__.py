"""The parts of `perf/scale.py`: made data, servers, pages, ingest."""
