"""Addresses to listen on, and to ask: `9464`, `0.0.0.0:9464`, `[::]:9464`."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import typer

from jobwire.errors import InvalidOption

if TYPE_CHECKING:
    from jobwire.worker import Worker

logger = logging.getLogger("jobwire.worker")

DEFAULT_PORT = 9464
LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]\s/]+):)?(?P<port>[0-9]{1,5})")
_ALL = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104 - not listened on here


@dataclass(frozen=True, slots=True)
class Listening:
    """A host and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, value: str) -> Self:
        """Returns the address. Without a host it is loopback.

        >>> Listening.parse("9464"), Listening.parse("[::]:9464")
        (Listening(host='127.0.0.1', port=9464), Listening(host='::', port=9464))
        """
        found = _ADDRESS.fullmatch(value)
        if found is None or not 0 <= int(found["port"]) <= 65535:
            raise typer.BadParameter(f"write PORT or HOST:PORT, such as 0.0.0.0:{DEFAULT_PORT} (got {value!r})")
        return cls((found["host"] or LOOPBACK).strip("[]"), int(found["port"]))

    def next(self, steps: int) -> Listening:
        """Returns the address so many ports further: the processes of one command have a port each."""
        return Listening(self.host, self.port + steps if self.port else 0)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def reachable(self) -> Listening:
        """The address at which this machine reaches what listens here, also if that listens on all addresses."""
        return Listening(_ALL.get(self.host, self.host), self.port)


@contextlib.asynccontextmanager
async def served(worker: Worker, listening: Listening | None) -> AsyncGenerator[None]:
    """Serves the worker's metrics and health inside the block. Without an address does nothing."""
    if listening is None:
        yield
        return
    from jobwire.observe.endpoint import Endpoint  # noqa: PLC0415 - needs packages of an extra
    from jobwire.observe.metrics import Metrics  # noqa: PLC0415 - needs packages of an extra

    async with contextlib.AsyncExitStack() as stack:
        metrics = stack.enter_context(Metrics())
        metrics.add(worker)
        worker.observe(metrics)
        endpoint = Endpoint(worker, metrics)
        try:
            port = await stack.enter_async_context(endpoint.serving(listening.host, listening.port))
        except OSError as error:
            raise InvalidOption("listen", str(listening), f"can't be listened on: {error.strerror}") from None
        logger.info("serving http://%s/metrics, /ready and /live", Listening(listening.host, port))
        yield
