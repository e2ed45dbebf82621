"""Notices that a server has closed a connection while it was idle, before a command is sent on it.

A command that was never sent can go out on another connection without being executed twice. The operating system is
asked, since the event loop may have had no turn since the connection was closed. That takes about a microsecond.
"""

from __future__ import annotations

import select


def has_input(socket: int) -> bool:
    """Returns True if a socket has something to read. On an idle connection that is the end of the connection, or an
    error message that precedes it. A socket that is closed on our side counts too."""
    if socket < 0:
        return True
    look = select.poll()
    look.register(socket, select.POLLIN)
    return bool(look.poll(0))
