"""The identity of a machine, and of a work directory on it."""

from pathlib import Path

from agents.hostagent.platform.machine import ensure_installation_id, read_machine_id
from tests.agents.support import AgentHost

MACHINE_ID = "3d1219c7c4c5404aaa1f6d2a48adfda4"


def put(system: Path, text: str) -> None:
    (system / "etc").mkdir(exist_ok=True)
    (system / "etc/machine-id").write_text(text)


def test_the_id_of_a_machine_is_a_hash(tmp_path: Path) -> None:
    put(tmp_path, f"{MACHINE_ID}\n")
    first = read_machine_id(tmp_path)
    assert first is not None
    assert len(first) == 32
    assert first != MACHINE_ID, "the id itself is confidential"
    put(tmp_path, f"{MACHINE_ID[:-1]}0\n")
    assert read_machine_id(tmp_path) not in (None, first)


def test_a_machine_without_an_id_has_none(tmp_path: Path) -> None:
    assert read_machine_id(tmp_path) is None
    put(tmp_path, "uninitialized\n")
    assert read_machine_id(tmp_path) is None


def test_a_work_directory_keeps_its_id(tmp_path: Path, host: AgentHost) -> None:
    first = ensure_installation_id(tmp_path)
    assert len(first) == 32
    assert ensure_installation_id(tmp_path) == first
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["installation"]
    facts = host.verb("facts")["facts"]
    assert facts["installation_id"] == ensure_installation_id(host.root) != first
    assert "machine_id" in facts
