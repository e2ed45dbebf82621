"""Monque on MongoDB: one collection of jobs, shared with the TypeScript scheduler `@monque/core`.

`Management` offers what the protocol has beyond jobwire's common face.
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
    """The backend of a `monque+…` address. Touches nothing."""
    from jobwire.backends.monque.backend import Monque  # noqa: PLC0415 - it needs the driver, the rules do not

    return Monque(address)


def __getattr__(name: str) -> Any:
    """The names above, imported when they are asked for: they need the driver."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.native.management"), name)
