"""The files of one step: its plan, journal, keepalive and dropped trials."""
