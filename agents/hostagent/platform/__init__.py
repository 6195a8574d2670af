"""Code that depends on the operating system: processes, limits, counters and facts of a host."""
