"""Renews objects in forked child processes (of gunicorn --preload, uWSGI, multiprocessing).

A fork copies sockets, event loops and locks, but not the threads that serve them. So a child must not use its parent's:
each object that follows forks gets new parts there, and is closed until it is opened again. The parent's parts are
never closed or finalised in the child. A closing message would be sent on the parent's connection. And both processes
share the epoll instance of an event loop, so that unregistering a socket in the child would stop its events in the
parent.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import os
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

logger = logging.getLogger("jobwire.worker")

_Object = TypeVar("_Object")
_numbers = itertools.count()
_followers: dict[int, tuple[weakref.ref[Any], Callable[[Any], None]]] = {}
"""In the order of registration, so that an object is renewed before those that use it."""
_of_parents: list[object] = []
_pid = os.getpid()


def follow(made: _Object, renew: Callable[[_Object], None]) -> None:
    """Calls the function with the object in every forked child, as long as the object exists."""
    number = next(_numbers)
    forget = partial(_followers.pop, number, None)
    _followers[number] = (weakref.ref(made, lambda _: forget()), renew)


def notice() -> None:
    """Renews everything if this process was forked by code that does not run Python's hooks, such as uWSGI."""
    if os.getpid() != _pid:
        _renew()


def leave_if_forked(process: int, what: str) -> None:
    """Ends this process if it is a copy of the one given. To be called when a function of the user's has returned: if
    it has forked, the copy returns too, and would go on as a second worker on the first one's connections."""
    if os.getpid() != process:
        logger.error("%s has forked, and the forked process has returned from it: it ends here", what)
        os._exit(0)


def keep(part: object) -> None:
    """Keeps an object of the parent from being finalised, even when this process ends."""
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
