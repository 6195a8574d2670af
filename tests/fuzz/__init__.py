"""Fuzzing of the API: no request causes an internal error or an undocumented answer."""
