"""The command line client of Pitwall: standard library only, Python 3.9 or newer."""
