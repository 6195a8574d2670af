"""The network of a trial: two namespaces with a link between them, for as long as the trial runs.

The agent's main thread is in the server's namespace: what it starts and reads belongs to the
server. `on_load_side` is for the requests of the agent and for the load tool.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..errors import TrialFailed
from ..step.plan import Network
from .commands import LOAD, SERVER, build_end_commands, build_link_commands
from .iproute import CommandFailed, run_command, run_commands
from .namespaces import Namespace, create_namespace
from .probe import measure_network


class EmulatedNetwork:
    """Both namespaces, and what was measured between them."""

    def __init__(self, network: Network, load: Namespace, server: Namespace) -> None:
        self._network = network
        self._load = load
        self._server = server
        self._measured: dict[str, Any] = {}
        self._queues = ""

    @contextlib.contextmanager
    def on_load_side(self) -> Iterator[None]:
        """Let this thread create sockets, processes and threads on the side of the load."""
        with self._load.entered():
            yield

    def set_up(self) -> None:
        with self._load.entered():
            run_commands(build_link_commands(self._server.path))
            run_commands(build_end_commands(LOAD, self._network))
        with self._server.entered():
            run_commands(build_end_commands(SERVER, self._network))
        self._measured = measure_network(self._network, self._load, self._server)
        self._queues = self._read_queues()

    def as_json(self) -> dict[str, Any]:
        """Return NETWORK of protocol.py; the queues are read again."""
        queues = self._read_queues()
        return {**self._measured, "queues": self._queues, "changed": queues != self._queues}

    def _read_queues(self) -> str:
        texts = []
        for end, namespace in ((LOAD, self._load), (SERVER, self._server)):
            with namespace.entered():
                texts.append(run_command(("tc", "qdisc", "show", "dev", end)))
        return "".join(texts)


@contextlib.contextmanager
def emulate(network: Network) -> Iterator[EmulatedNetwork]:
    """Set up the network, measure it, and let this thread be on the server's side.

    TrialFailed("network_failed") if the host cannot do that. The kernel removes the network after
    the block with the last process in it.
    """
    with contextlib.ExitStack() as stack:
        try:
            load, server = create_namespace(), create_namespace()
            stack.callback(load.close)
            stack.callback(server.close)
            emulated = EmulatedNetwork(network, load, server)
            emulated.set_up()
        except (OSError, CommandFailed) as error:
            raise TrialFailed("network_failed", f"cannot set up the network: {error}") from error
        stack.enter_context(server.entered())
        yield emulated
