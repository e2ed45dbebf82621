"""The holder of a connection is found, also if it is the process that looks."""

from __future__ import annotations

import os
import socket

from faults.holders import holder_of


def test_the_process_that_holds_a_connection_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert holder_of(client.getsockname()[1]).startswith(f"process {os.getpid()}: ")


def test_a_connection_that_was_closed_has_no_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert holder_of(port) == "no process that can be seen"
