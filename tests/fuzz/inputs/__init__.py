"""Bad input: real samples, changed at random, for everything that reads what others wrote."""
