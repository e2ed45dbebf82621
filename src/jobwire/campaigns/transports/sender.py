"""The one way in which a campaign calls a transport.

Transports are written by others. Whatever one of them does, the caller of `Sender.send` gets a `Receipt` or one of the
errors of `transport.py`, within the time limit:

* `send` runs in a task of its own. At the time limit it is cancelled and gets a few seconds to end. A transport that
  goes on regardless is left behind and logged. If it returns a receipt in these seconds, the receipt counts, since the
  message was sent.
* An unknown exception, a value that is not a `Receipt`, and a cancellation from inside the transport are `Retryable`.
* The time of a `FloodWait` is bounded, so that a campaign neither resumes at once nor stays paused for years.
* In TEST mode a message is handed over only to a transport that declares `records_only`.
* A transport that has `send_many` gets many messages in one call, unless a subclass overrides only `send`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import traceback
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Self, cast

from jobwire import checks
from jobwire.campaigns.transports.transport import (
    FloodWait,
    Message,
    Receipt,
    Retryable,
    Transport,
    TransportBroken,
    TransportError,
)
from jobwire.counted import counted
from jobwire.deadline import deadline
from jobwire.errors import InvalidOption, MissingExtra, shown
from jobwire.redact import redact

logger = logging.getLogger("jobwire.campaigns")

SEND_TIMEOUT = 60.0
SHORTEST_WAIT = 1.0
LONGEST_WAIT = 7 * 86400.0
UNKNOWN_WAIT = 60.0
"""Seconds to wait if a transport asks for a time that is not a number."""
_GRACE = 2.0


class Sender:
    """Sends messages through one transport: `async with Sender(transport_of("outbox:")) as sender`."""

    def __init__(self, transport: Transport, *, timeout: checks.Seconds = SEND_TIMEOUT) -> None:
        if not callable(getattr(transport, "send", None)):
            raise InvalidOption("transport", transport, "must have a method send(message)")
        self.transport = transport
        self._timeout = checks.seconds("timeout", timeout, minimum=0.001)
        self._left_behind: set[asyncio.Task[Any]] = set()
        self._open = False
        self.sends_many = _sends_many(transport)
        """True if the transport takes many messages in one call."""

    async def __aenter__(self) -> Self:
        """Opens the transport. Raises `TransportBroken` if it can't be used, `Retryable` if it may be later."""
        enter = getattr(self.transport, "__aenter__", None)
        if enter is not None:
            await self._call("open the transport", _opened(enter()))
            self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._open:
            return
        self._open = False
        leave = getattr(self.transport, "__aexit__", None)
        if leave is not None:
            try:
                await self._call("close the transport", leave(None, None, None))
            except TransportError as failed:
                logger.warning("the transport could not be closed: %s", failed)

    async def send(self, message: Message) -> Receipt:
        """Sends one message. Raises FloodWait, PeerBlocked, Permanent, Retryable or TransportBroken."""
        if self.sends_many:
            [receipt] = await self.send_many([message])
            return receipt
        if not self._is_handed_over(message):
            return Receipt(None)
        return self._receipt(await self._begin(f"send job {message.job_id}", self.transport.send, message))

    async def send_many(self, messages: Sequence[Message]) -> Sequence[Receipt]:
        """Sends messages in one call, if the transport takes many. Raises as `send`: then none of them counts as
        sent."""
        given = [message for message in messages if self._is_handed_over(message)]
        receipts = iter(await self._send_many(given) if given else ())
        if len(given) == len(messages):
            return list(receipts)
        return [next(receipts) if self._is_handed_over(message) else Receipt(None) for message in messages]

    def _is_handed_over(self, message: Message) -> bool:
        return message.mode != "TEST" or getattr(self.transport, "records_only", False)

    async def _send_many(self, messages: Sequence[Message]) -> Sequence[Receipt]:
        what = f"send {counted(len(messages), 'message')}"
        receipts = await self._begin(what, cast("Any", self.transport).send_many, messages)
        if not isinstance(receipts, (list, tuple)) or len(cast("Sequence[Any]", receipts)) != len(messages):
            raise self._unknown(receipts, f"{counted(len(messages), 'receipt')} in a list")
        return [self._receipt(receipt) for receipt in cast("Sequence[Any]", receipts)]

    async def _begin(self, what: str, method: Callable[[Any], Any], argument: Any) -> Any:
        try:
            call = method(argument)
        except Exception as error:
            raise self._mapped(what, error)  # noqa: B904 - its cause is set where another error is made of it
        return await self._call(what, call)

    def _receipt(self, receipt: Any) -> Receipt:
        if not isinstance(receipt, Receipt):
            raise self._unknown(receipt, "a Receipt")
        return receipt

    def _unknown(self, returned: Any, wanted: str) -> Retryable:
        text = f"{self._name} returned {shown(returned)} instead of {wanted}: it is unknown whether anything was sent"
        return Retryable(text, reason="NOT_A_RECEIPT")

    @property
    def _name(self) -> str:
        return type(self.transport).__name__

    async def _call(self, what: str, call: Any) -> Any:
        """Returns what the transport's coroutine returns, within the time limit and with its errors mapped."""
        if not inspect.isawaitable(call):
            return call
        task = asyncio.ensure_future(_awaited(call))
        try:
            async with deadline(self._timeout):
                await asyncio.wait({task})
        except TimeoutError:
            await self._stop(what, task)
            if not task.done() or task.cancelled():
                raise Retryable(f"{self._name} did not {what} within {self._timeout:g} s", reason="TIMEOUT") from None
        except asyncio.CancelledError:
            await self._stop(what, task)
            raise
        if task.cancelled():
            raise Retryable(f"{self._name} cancelled its own call to {what}", reason="CANCELLED")
        if (error := task.exception()) is not None:
            raise self._mapped(what, error)
        return task.result()

    async def _stop(self, what: str, task: asyncio.Task[Any]) -> None:
        """Cancels a call of the transport and waits a little for its end."""
        task.cancel()
        self._left_behind.add(task)
        task.add_done_callback(self._ended)
        await asyncio.wait({task}, timeout=_GRACE)
        if not task.done():
            logger.warning("%s ignores its cancellation in a call to %s; it is left running", self._name, what)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen, so that asyncio does not log it

    def _mapped(self, what: str, error: BaseException) -> TransportError:
        """Returns the error that the campaign sees for one that the transport raised."""
        if isinstance(error, FloodWait):
            return self._bounded(error)
        if isinstance(error, TransportError) and type(error) is not TransportError:
            return error
        text = redact(f"{type(error).__name__}: {error}")
        if isinstance(error, TransportError):
            found = Retryable(str(error), reason=error.reason)
        elif isinstance(error, TimeoutError):
            found = Retryable(f"{self._name} ran into a timeout: {text}", reason="TIMEOUT")
        else:
            found = Retryable(f"{self._name} raised {text}", reason="UNEXPECTED")
            trace = redact("".join(traceback.format_exception(error)))
            logger.error("%s could not %s, which counts as retryable: %s", self._name, what, trace)
        found.__cause__ = error
        return found

    def _bounded(self, error: FloodWait) -> FloodWait:
        asked = getattr(error, "seconds", None)  # a subclass may not have called its base class
        seconds = bounded_wait(asked)
        if seconds == asked:
            return error
        logger.warning("%s asked to wait for %s s; waiting for %g s", self._name, shown(asked), seconds)
        alone = getattr(error, "channel_only", False)
        found = FloodWait(seconds, str(error), reason=getattr(error, "reason", ""), channel_only=alone)
        found.__cause__ = error
        return found


def _sends_many(transport: Transport) -> bool:
    """Returns True if `send_many` is to be called. A subclass that overrides only `send` gets each message there."""
    if not callable(getattr(transport, "send_many", None)):
        return False
    defining = next((kind for kind in type(transport).__mro__ if vars(kind).keys() & {"send", "send_many"}), None)
    return defining is None or "send_many" in vars(defining)


def bounded_wait(seconds: Any) -> float:
    """Returns a time to wait, of at least a second and at most a week.

    >>> bounded_wait(30), bounded_wait(-5), bounded_wait(float("inf")), bounded_wait("soon")
    (30.0, 1.0, 604800.0, 60.0)
    """
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return UNKNOWN_WAIT
    if isinstance(seconds, float) and math.isnan(seconds):
        return UNKNOWN_WAIT
    return float(min(max(seconds, SHORTEST_WAIT), LONGEST_WAIT))


async def _opened(entering: Awaitable[Any]) -> None:
    """Opens a transport. An option that it refuses and a package that it misses make it useless."""
    try:
        await entering
    except (InvalidOption, MissingExtra) as error:
        raise TransportBroken(str(error), reason="MISCONFIGURED") from error


async def _awaited(call: Awaitable[Any]) -> Any:
    return await call
