"""Hardware profiles that public reports name, with the facts that the reports give."""

from typing import Any

_GIB = 1024**3

#: slug → name and facts; facts that a report does not give are left out and so unknown.
PROFILES: dict[str, dict[str, Any]] = {
    "thinkpad-t490s": {
        "name": "Lenovo ThinkPad T490s",
        "cpu_model": "Intel Core i5-8365U",
        "cores": 4,
        "base_clock_mhz": 1600,
        "boost_clock_mhz": 4800,
        "memory_bytes": 16 * _GIB,
        "os": "Windows 11 Pro",
    },
    "macbook-air-m2": {
        "name": "Apple MacBook Air M2",
        "cpu_model": "Apple M2",
        "cores": 8,
        "base_clock_mhz": 2400,
        "boost_clock_mhz": 3500,
        "memory_bytes": 16 * _GIB,
        "os": "macOS",
    },
    "aws-ec2": {"name": "AWS EC2", "os": "Linux", "notes": "The report names no instance type."},
    "gcp": {"name": "Google Cloud", "notes": "The report names no machine type."},
    "apple-m4-pro": {
        "name": "Apple M4 Pro",
        "cpu_model": "Apple M4 Pro",
        "os": "macOS",
        "notes": "Go's testing package was the load generator of the report.",
    },
    "fedora-i7-laptop": {
        "name": "Mid-range laptop, 12th Gen Core i7",
        "cpu_model": "12th Gen Intel Core i7",
        "memory_bytes": 32 * _GIB,
        "os": "Fedora 38",
    },
}
