"""Shift the wall clock of a host's programs by the seconds in the file PITWALL_TEST_CLOCK.

Each Python there imports this at its start, from the PYTHONPATH that sshd sets. There is no
namespace for the wall clock. This shifts the time that programs read, and the times of files, which
the host's kernel would have written by the same clock. The monotonic clock is unchanged.
"""

import os
import time

_time, _time_ns = time.time, time.time_ns
_stat, _lstat, _fstat, _utime = os.stat, os.lstat, os.fstat, os.utime


def _offset_s():
    with open(os.environ["PITWALL_TEST_CLOCK"]) as file:
        return int(file.read())


def _shifted(found):
    offset = _offset_s()
    _, (fields, extra) = found.__reduce__()
    places = {7: offset, 8: offset, 9: offset}
    fields = [value + places.get(place, 0) for place, value in enumerate(fields)]
    for name in ("st_atime", "st_mtime", "st_ctime"):
        extra[name] += offset
        extra[name + "_ns"] += offset * 10**9
    return os.stat_result(fields, extra)


def _shifted_utime(path, times=None, *, ns=None, **more):
    offset = _offset_s()
    if times is not None:
        return _utime(path, tuple(value - offset for value in times), **more)
    if ns is not None:
        return _utime(path, ns=tuple(value - offset * 10**9 for value in ns), **more)
    return _utime(path, **more)


if "PITWALL_TEST_CLOCK" in os.environ:
    time.time = lambda: _time() + _offset_s()
    time.time_ns = lambda: _time_ns() + _offset_s() * 10**9
    os.stat = lambda *args, **more: _shifted(_stat(*args, **more))
    os.lstat = lambda *args, **more: _shifted(_lstat(*args, **more))
    os.fstat = lambda *args, **more: _shifted(_fstat(*args, **more))
    os.utime = _shifted_utime
