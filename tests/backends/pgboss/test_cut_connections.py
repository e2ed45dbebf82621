"""A connection that the network has cut is forgotten by its number: the system gives that number to the next one."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from urllib.parse import urlsplit

from awaiting import eventually
from faults.proxy import Proxy
from jobwire.backends.pgboss.connection.pipelined import PipelinedConnection
from jobwire.backends.pgboss.connection.statements import statement
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


async def test_the_server_ends_a_statement_whose_caller_has_given_up(jobwire_postgres: Server) -> None:
    """Otherwise a page that is opened again and again on a slow store would add a statement each time."""
    mark = f"given_up_{uuid.uuid4().hex}"
    connection = await PipelinedConnection.connect(jobwire_postgres.url, "the server")
    other = await PipelinedConnection.connect(jobwire_postgres.url, "the server")
    active = statement(
        "active", f"SELECT 1 FROM pg_stat_activity WHERE query LIKE '%{mark}%' AND pid <> pg_backend_pid()"
    )

    async def runs() -> bool:
        [rows] = await other.run([(active, {})])
        return bool(rows)

    async def has_ended() -> bool:
        return not await runs()

    try:
        call = asyncio.create_task(connection.run([(statement("slow", f"SELECT pg_sleep(600) AS {mark}"), {})]))
        await eventually(runs)
        call.cancel()
        await eventually(has_ended)
    finally:
        connection.close()
        other.close()
