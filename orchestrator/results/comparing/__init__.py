"""Two sides beside each other: commits, hosts, cases, tools, versions."""
