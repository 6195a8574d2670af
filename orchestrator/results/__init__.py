"""The tables of measurements and of the conclusions from them."""
