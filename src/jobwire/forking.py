"""What a forked child process (of gunicorn --preload, uWSGI, multiprocessing) makes of its parent's objects.

A fork copies sockets, event loops and locks, but not the threads that serve them. So a child uses none of what its
parent had: each object that follows forks gets parts of its own there, and is closed until it is opened again. The
parent's parts are never closed or finalised in the child: a goodbye would go into the parent's conversation, and the
epoll instance of an event loop is one and the same in both, so that forgetting a socket makes the parent deaf to it.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

_Object = TypeVar("_Object")
_numbers = itertools.count()
_followers: dict[int, tuple[weakref.ref[Any], Callable[[Any], None]]] = {}
"""In the order in which they came, so that what others use is renewed before them."""
_of_parents: list[object] = []
_pid = os.getpid()


def follow(made: _Object, renew: Callable[[_Object], None]) -> None:
    """Have the function called with the object in every forked child, as long as the object lives."""
    number = next(_numbers)
    forget = partial(_followers.pop, number, None)
    _followers[number] = (weakref.ref(made, lambda _: forget()), renew)


def notice() -> None:
    """Renew everything if this process was forked by code that does not run Python's hooks, as uWSGI's."""
    if os.getpid() != _pid:
        _renew()


def keep(part: object) -> None:
    """Never finalise what is the parent's, not even when this process ends."""
    if not _of_parents:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_of_parents))
    _of_parents.append(part)


def _parts(made: Any) -> dict[str, Any]:
    return {**vars(made)}


def _renew() -> None:
    global _pid  # noqa: PLW0603 - the one thing here that changes
    _pid = os.getpid()
    for reference, renew in list(_followers.values()):
        made = reference()
        if made is not None:
            keep(_parts(made))
            renew(made)


os.register_at_fork(after_in_child=_renew)
