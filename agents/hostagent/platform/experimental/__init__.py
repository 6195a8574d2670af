"""Experimental support for macOS and Windows: no such machine has run this code yet.

Its tests run on Linux. They check only the parts that need no call of macOS or Windows.
"""
