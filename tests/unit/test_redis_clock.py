"""The server's time as workers and producers of one queue use it."""

from __future__ import annotations

import asyncio
import doctest
import time

from jobwire.backends.redisio import clock
from jobwire.backends.redisio.clock import ServerClock


class Server:
    """Answers TIME by a clock that is an hour ahead of this machine's, plus `set_by` seconds."""

    def __init__(self) -> None:
        self.set_by = 0.0
        self.reply_takes = 0.0

    def now(self) -> float:
        return time.time() + 3600 + self.set_by

    async def ask(self) -> tuple[int, int]:
        now = self.now()
        await asyncio.sleep(self.reply_takes)
        return int(now), int(now % 1 * 1_000_000)


async def test_a_slow_reply_does_not_set_the_clock_back() -> None:
    server = Server()
    ours = ServerClock("here", server.ask)
    await ours.now_ms()
    server.reply_takes = 0.2
    before = ours.last_known_ms()
    ours.forget()
    assert await ours.now_ms() >= before + 199
    assert await ours.now_ms() <= server.now() * 1000


async def test_a_time_of_the_server_in_another_reply_moves_the_clock_forward_only() -> None:
    server = Server()
    server.reply_takes = 0.2
    ours = ServerClock("here", server.ask)
    await ours.now_ms()
    moment = server.now() * 1000

    ours.passed(moment)
    ours.passed(moment - 100)

    assert moment <= ours.last_known_ms() <= server.now() * 1000


async def test_a_clock_that_was_set_is_followed() -> None:
    server = Server()
    ours = ServerClock("here", server.ask)
    for server.set_by in (-600.0, 300.0, 0.0):
        ours.forget()
        before = server.now() * 1000
        await ours.now_ms()
        assert before - 5 <= ours.last_known_ms() <= server.now() * 1000


def test_measurements_agree_as_the_docstring_says() -> None:
    assert doctest.testmod(clock).failed == 0
    assert doctest.testmod(clock).attempted > 0
