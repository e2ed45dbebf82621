"""A Valkey cluster of masters only, for trying and testing what a cluster does with keys and slots."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType

from jobwire.embedded import locks, resp, state
from jobwire.embedded.server import Server, make_server_folder
from jobwire.embedded.valkey import ValkeyNode

_Ask = Callable[..., str]

_SLOTS = 16384
_FORM_LIMIT = 30.0
_LOCK = "form.lock"


class Cluster:
    """The nodes of a cluster, shared like a single server."""

    def __init__(self, folder: Path | str, nodes: int, durable: bool) -> None:
        recipes = [ValkeyNode(durable, number, nodes) for number in range(1, nodes + 1)]
        self._password = _password(Path(folder).absolute(), recipes[0])
        with ExitStack() as undo:
            with ThreadPoolExecutor(nodes) as pool:
                starts = [pool.submit(Server, recipe, folder) for recipe in recipes]
            for start in starts:
                if start.exception() is None:
                    undo.callback(start.result().close)
            self.nodes = [start.result() for start in starts]
            self.folder = self.nodes[0].folder.parent
            _form(self.folder, self.nodes, self._password)
            undo.pop_all()

    @property
    def urls(self) -> list[str]:
        """The driver URL of every node."""
        return [node.url for node in self.nodes]

    @property
    def url(self) -> str:
        """The driver URL of the first node. A cluster client finds the other nodes from any of them."""
        return self.nodes[0].url

    @property
    def hosts(self) -> str:
        """Password and nodes as a `cluster://` URL lists them: `f"bullmq+cluster://{cluster.hosts}/"`."""
        return f":{self._password}@" + ",".join(url.rpartition("@")[2].partition("/")[0] for url in self.urls)

    @property
    def pids(self) -> list[int]:
        """The nodes' processes."""
        return [node.pid for node in self.nodes]

    def close(self) -> None:
        """Closes this process's share of every node. Nodes that no other process uses have stopped when this
        returns."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            for done in [pool.submit(node.close) for node in self.nodes]:
                done.result()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _password(folder: Path, recipe: ValkeyNode) -> str:
    """Returns the password that the nodes share. It is made before any of them is started."""
    recipe.check()
    node = make_server_folder(folder, recipe.name)
    lock = locks.open_lock(node.parent / _LOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return recipe.password(node)
    finally:
        os.close(lock)


def _form(folder: Path, nodes: list[Server], password: str) -> None:
    """Assigns the slots and connects the nodes, as far as that is still to do, and waits until all nodes agree."""
    ask = partial(resp.ask, password=password)
    lock = locks.open_lock(folder / _LOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time, for `_FORM_LIMIT` seconds at most
        addresses = [stored.ports for node in nodes if (stored := state.read(node.folder)) is not None]
        ports = [port for port, _bus in addresses]
        if not _agreed(ask, ports):
            for number, port in enumerate(ports):
                _deal(ask, port, number, len(ports))
            for port, bus in addresses[1:]:
                # Harmless between nodes that are connected already. Needed again if a node restarted on another port.
                ask(ports[0], "CLUSTER", "MEET", "127.0.0.1", str(port), str(bus))
        locks.wait_until(lambda: _agreed(ask, ports), _FORM_LIMIT, f"The nodes of {folder} do not form a cluster")
    finally:
        os.close(lock)


def _deal(ask: _Ask, port: int, number: int, count: int) -> None:
    own = next(line for line in ask(port, "CLUSTER", "NODES").splitlines() if "myself" in line)
    if len(own.split()) > 8:  # slots follow the eight fields of a node
        return
    first, after = number * _SLOTS // count, (number + 1) * _SLOTS // count
    ask(port, "CLUSTER", "ADDSLOTSRANGE", str(first), str(after - 1))
    # Distinct epochs from the start save the nodes from resolving a collision. A node refuses if it has an epoch or is
    # connected already. Then the nodes resolve it themselves.
    with suppress(resp.Refused):
        ask(port, "CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))


def _agreed(ask: _Ask, ports: list[int]) -> bool:
    for port in ports:
        try:
            told = resp.fields(ask(port, "CLUSTER", "INFO"))
        except (OSError, resp.Refused):
            return False
        if told["cluster_state"] != "ok" or told["cluster_known_nodes"] != str(len(ports)):
            return False
    return True
