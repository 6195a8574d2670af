"""What a host reports about a load in addition to its samples."""

from pathlib import Path

import pytest

from agents.hostagent.monitoring import host_monitor
from agents.hostagent.monitoring.host_monitor import HostMonitor, MonitoredProcesses


def test_the_output_of_the_measured_processes_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_monitor, "SHORTEST_S", 0.0)
    logs = [tmp_path / "server.log", tmp_path / "service-db.log"]
    logs[0].write_bytes(b"x" * 10**6)
    monitored = MonitoredProcesses(
        server=None, port=None, services=[], tool=False, cpus=None, logs=logs
    )
    monitor = HostMonitor(monitored, dict)
    with logs[0].open("ab") as file:
        file.write(b"x" * 2_000_000)
    logs[1].write_bytes(b"x" * 1_000_000)
    interference = monitor.end(None)["interference"]
    written = interference["log_bytes_per_s"] * interference["seconds"]
    assert written == pytest.approx(3_000_000)
    monkeypatch.setattr(host_monitor, "SHORTEST_S", 60.0)
    assert monitor.end(None)["interference"]["log_bytes_per_s"] is None
