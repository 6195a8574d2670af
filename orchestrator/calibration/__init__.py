"""The reliability of hosts: calibrations, golden runs, noise and resolution."""
