"""Monque on MongoDB: one collection of jobs, shared with the TypeScript scheduler `@monque/core`.

`Management` offers what only Monque has.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jobwire.boundary import Backend
from jobwire.urls import Address

if TYPE_CHECKING:
    from jobwire.backends.monque.native.management import (
        CursorPage,
        Management,
        QueueView,
        Selector,
        Sort,
        Statistics,
        Within,
    )

__all__ = [
    "CursorPage",
    "Management",
    "QueueView",
    "Selector",
    "Sort",
    "Statistics",
    "Within",
    "open_backend",
]


def open_backend(address: Address) -> Backend:
    """Returns the backend of a `monque+…` address. Connects to nothing."""
    from jobwire.backends.monque.backend import Monque  # noqa: PLC0415 - it needs the driver, the rules do not

    return Monque(address)


def __getattr__(name: str) -> Any:
    """Imports the names above when they are first used: they need the driver."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.native.management"), name)
