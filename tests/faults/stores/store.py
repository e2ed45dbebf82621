"""A store under test: its server, a place of its own on it, and what can be seen there without jobwire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from faults.case import StoredJob


class Running(Protocol):
    """A running server, or several that are one store. They stop at the end of the block."""

    @property
    def url(self) -> str:
        """The driver's URL."""
        ...

    @property
    def pid(self) -> int:
        """The process that has the data. 0 while there is none."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Store(ABC):
    """One protocol on a server, with a place for one run."""

    protocol: ClassVar[str]
    native: ClassVar[tuple[str, dict[str, Any]] | None] = None
    """Native options of the workers: the class and its values."""
    peer: ClassVar[Path | None] = None
    """The program of a Node worker, if the protocol has a Node peer."""
    peer_package: ClassVar[str] = ""
    peers_jobs_are_recovered: ClassVar[bool] = True
    """False if a job of a killed Node worker, or one whose outcome Node could not send, waits for its own time limit of
    many minutes. Then no fault hits Node's worker."""

    def __init__(self, server: Running, place: str) -> None:
        self.server = server
        self.place = place

    @staticmethod
    @abstractmethod
    def start(folder: Path) -> Running:
        """Starts a server that keeps what it has acknowledged."""

    @property
    def port(self) -> int:
        return urlsplit(self.server.url).port or 0

    @property
    def url(self) -> str:
        return self.at(self.server.url)

    @abstractmethod
    def at(self, server: str) -> str:
        """Returns jobwire's URL of the place, on a server of this driver's URL."""

    def through(self, port: int) -> str:
        """Returns the URL of the place behind a proxy."""
        return self.url.replace(f":{self.port}/", f":{port}/")

    def prepare(self, *, transactions: bool) -> Mapping[str, Any]:
        """Makes what the run needs in its place. Returns settings of the Python workers for it. With `transactions`,
        handlers write into the store in the transaction that completes their job, where the protocol has that."""
        return {}

    @abstractmethod
    def residue(self, jobs: Sequence[StoredJob]) -> list[str]:
        """Returns what no job in the store explains: keys, rows, documents and locks at rest."""

    def unfinished(self) -> list[str]:
        """Returns what workers still have to do when every job has ended."""
        return []

    @abstractmethod
    def connections(self) -> list[str]:
        """Describes the connections of clients, without the one that asks."""

    @abstractmethod
    def remove(self) -> None:
        """Removes the place."""
