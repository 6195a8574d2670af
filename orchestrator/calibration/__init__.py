"""How far a host can be trusted: calibrations, golden runs, noise and resolution."""
