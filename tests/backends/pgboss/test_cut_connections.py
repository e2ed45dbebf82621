"""A connection that the network has cut is forgotten by its number: the system gives that number to the next one."""

from __future__ import annotations

import asyncio
import os
import socket
from urllib.parse import urlsplit

from awaiting import eventually
from faults.proxy import Proxy
from jobwire.backends.pgboss.connection.pipelined import PipelinedConnection
from jobwire.embedded import Server


async def test_closing_a_cut_connection_leaves_the_next_owner_of_its_number_alone(jobwire_postgres: Server) -> None:
    loop = asyncio.get_running_loop()
    async with Proxy(urlsplit(jobwire_postgres.url).port or 0) as proxy:
        connection = await PipelinedConnection.connect(proxy.through(jobwire_postgres.url), "the proxy")
        number = connection._socket
        proxy.cut()
        await eventually(lambda: connection.broken)
        ours, theirs = socket.socketpair()
        heard = asyncio.Event()
        try:
            if ours.fileno() != number:  # lower numbers came free as well
                os.dup2(ours.fileno(), number)
            loop.add_reader(number, heard.set)
            connection.close()
            theirs.send(b"!")
            await asyncio.wait_for(heard.wait(), 10)
        finally:
            loop.remove_reader(number)
            if ours.fileno() != number:
                os.close(number)
            ours.close()
            theirs.close()
