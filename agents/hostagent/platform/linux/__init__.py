"""Linux: processes, control groups, counters, facts, sockets and tuning."""
