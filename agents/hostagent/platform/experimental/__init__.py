"""macOS and Windows. No test has run this code on such a machine yet; see agents/README.md."""
