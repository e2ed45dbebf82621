"""Binds the socket of a server. An application that anyone may use is bound to loopback addresses only."""

from __future__ import annotations

import ipaddress
import socket

from jobwire.errors import InvalidOption


def listen(host: str, port: int, *, open_to_all: bool, variable: str) -> socket.socket:
    """Returns a socket that is bound to the address. What was checked is what is bound: the name is resolved once.

    `open_to_all` refuses an address beyond loopback, and names the variable that tokens can be given in."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, OverflowError, UnicodeError):
        raise InvalidOption("host", host, "must be an address or a name of this machine") from None
    family, _, _, _, address = found[0]
    if open_to_all and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        rule = f"is not a loopback address, which needs tokens: give a file with --tokens, or set {variable}"
        raise InvalidOption("host", host, rule)
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.set_inheritable(False)
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"can't listen on {host} port {port}: {error.strerror}") from None
    return listening


def url_of(listening: socket.socket) -> str:
    """Returns the URL of a server on the socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
