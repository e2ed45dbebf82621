"""Monque on MongoDB: one collection of jobs, shared with the TypeScript scheduler `@monque/core`.

`Management` offers what the protocol has beyond jobwire's common face.
"""

from __future__ import annotations

from jobwire.backend import Backend
from jobwire.backends.monque.backend import Monque
from jobwire.backends.monque.management import (
    CursorPage,
    Management,
    QueueView,
    Selector,
    Sort,
    Statistics,
    Within,
)
from jobwire.urls import Address

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
    return Monque(address)
