"""Tables of measurements, saved reports, and reference results that others published."""
