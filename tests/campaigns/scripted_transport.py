"""A transport that fails on cue, for tests of what calls transports."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from jobwire.campaigns.transports import Message, Receipt


@dataclass(frozen=True)
class Lie:
    """Return this value, which is not a receipt."""

    value: Any = None


@dataclass(frozen=True)
class Always:
    """Follow this cue each time from here on."""

    cue: Any


@dataclass(frozen=True)
class Wait:
    """Wait until `go` is set, then follow the cue. `reached` is set when the wait begins."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    cue: Any = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class Stubborn:
    """Ignore cancellation until `go` is set."""

    go: asyncio.Event = field(default_factory=asyncio.Event)


HANG = object()
"""Wait until the call is cancelled."""


class ScriptedTransport:
    """Follows one list of cues for each channel (by id), and `default` for channels without one. After its last cue, a
    channel's messages are sent. A cue is an exception to raise, `None` to send, or one of the classes above.

    `sent` has the messages that got a receipt, `asked` all that arrived. A key that was sent before gets its first
    receipt again and counts in `recognised`.
    """

    records_only: ClassVar[bool] = False

    def __init__(self, cues: Mapping[str, Iterable[Any]] | None = None, default: Iterable[Any] = ()) -> None:
        start = list(default)
        self._cues: defaultdict[str, deque[Any]] = defaultdict(lambda: deque(start))
        for channel, given in (cues or {}).items():
            self._cues[channel] = deque(given)
        self._receipts: dict[str, Receipt] = {}
        self.asked: list[Message] = []
        self.sent: list[Message] = []
        self.recognised = 0
        self.opened = 0
        self.closed = 0

    async def __aenter__(self) -> Self:
        self.opened += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed += 1

    async def send(self, message: Message) -> Receipt:
        self.asked.append(message)
        if message.idempotency_key in self._receipts:
            self.recognised += 1
            return self._receipts[message.idempotency_key]
        return await self._follow(self._next(message.channel_id), message)

    def _next(self, channel: str) -> Any:
        cues = self._cues[channel]
        if cues and isinstance(cues[0], Always):
            return cues[0].cue
        return cues.popleft() if cues else None

    async def _follow(self, cue: Any, message: Message) -> Any:
        match cue:
            case BaseException():
                raise cue
            case Lie(value):
                return value
            case Wait(go, then, reached):
                reached.set()
                await go.wait()
                return await self._follow(then, message)
            case Stubborn(go):
                while not go.is_set():
                    try:
                        await go.wait()
                    except asyncio.CancelledError:
                        continue
            case _ if cue is HANG:
                await asyncio.Event().wait()
            case _:
                pass
        self.sent.append(message)
        receipt = Receipt(f"{message.channel_id}-{len(self.sent)}")
        self._receipts[message.idempotency_key] = receipt
        return receipt
