"""One machine for all tests here."""

from collections.abc import Iterator

import pytest

from tests.vm.agent import MachineAgent
from tests.vm.image import find_missing_packages, load_image
from tests.vm.machine import Machine, build_script, start_machine


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    missing = find_missing_packages()
    if missing:
        pytest.fail(f"install them first: apt-get install {' '.join(missing)}", pytrace=False)
    with start_machine(load_image(), tmp_path_factory.mktemp("vm")) as running:
        yield running


@pytest.fixture(scope="session")
def setup_output(machine: Machine) -> str:
    """What `pitwall host setup` reported on the new machine."""
    return machine.run(build_script(machine))


@pytest.fixture(scope="session")
def agent(machine: Machine, setup_output: str) -> MachineAgent:
    """The agent of the account that the setup created."""
    return MachineAgent(machine, "pitwall")
