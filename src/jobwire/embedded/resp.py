"""A minimal client of the Redis protocol, to ask a starting Valkey for its state without a driver."""

from __future__ import annotations

import socket
from typing import BinaryIO


class Refused(Exception):
    """The server answered with an error."""


def ask(port: int, *words: str, password: str, timeout: float = 2.0) -> str:
    """Sends one command to a server on loopback. Raises OSError without an answer, `Refused` for an error reply."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection, connection.makefile("rb") as replies:
        connection.sendall(_request("AUTH", password) + _request(*words))
        _read(replies)
        return _read(replies)


def _request(*words: str) -> bytes:
    return (f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)).encode("ascii")


def _read(replies: BinaryIO) -> str:
    line = replies.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionResetError("the server closed the connection")
    kind, rest = line[:1], line[1:-2].decode()
    if kind == b"-":
        raise Refused(rest)
    if kind == b"$":
        size = int(rest)
        body = replies.read(size + 2)
        if len(body) < size + 2:
            raise ConnectionResetError("the server closed the connection")
        return body[:-2].decode()
    return rest


def fields(text: str) -> dict[str, str]:
    """Parses the `name:value` lines of INFO and CLUSTER INFO."""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
