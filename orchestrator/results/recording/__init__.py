"""Writing what was measured: trials of our own, results that clients send, whole files."""
