"""One run of a load tool, and the files that it leaves."""
