"""The tables of measurements, of series of them, and of the changes in these series."""
