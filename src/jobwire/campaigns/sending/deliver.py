"""Sends one message of the queue: waits for its slot, claims its row, sends, settles.

Messages that run at the same time are claimed in one statement. If the transport takes many messages in one call, they
stay together until they are settled. Through other transports each message is sent by itself.

The row decides. If it can't be claimed, since the message was sent, is being sent, or its campaign does not run, or if
no slot is near, the queue's job is done: a row that still waits gives up its place in the queue, and is fed again when
its campaign runs and its time has come.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psycopg

from jobwire.campaigns.connections import Connections
from jobwire.campaigns.models import Claim, Outcome, Settled, Settlement
from jobwire.campaigns.sending.delivery_rate import DeliveryRate, is_late
from jobwire.campaigns.sending.payload import SendMessage
from jobwire.campaigns.sending.queues import RETRY_DELAY
from jobwire.campaigns.states import JobStatus
from jobwire.campaigns.store import Store
from jobwire.campaigns.transports import (
    FloodWait,
    Message,
    PeerBlocked,
    Permanent,
    Receipt,
    Sender,
    TransportBroken,
    TransportError,
)
from jobwire.campaigns.transports.transport import readable, reason_code
from jobwire.coalesce import Coalescer
from jobwire.errors import InvalidOption, Snooze, StoreUnavailable
from jobwire.worker.active import ActiveJob

logger = logging.getLogger("jobwire.campaigns")

LONGEST_BACKOFF = 3600.0
_AT_ONCE = 50
"""Messages of one statement. With more the database would wait for this process, and this process for the database."""
_AWAY = (StoreUnavailable, psycopg.OperationalError)
"""Errors of a database that is away. The second: a deadlock, a timeout, a full disk."""
_TRY_AGAIN = 1.0
"""Seconds between attempts to claim or settle while the database is away."""

Timed = tuple[SendMessage, float]
"""A message and the time of its slot."""
Sent = Receipt | TransportError | None
"""The result of sending a message, None if that was not tried yet."""


class Delivery:
    """Handles the jobs of `send-message`. Claims and settles of messages that run at the same time share statements."""

    def __init__(
        self,
        store: Store,
        connections: Connections,
        sender: Sender,
        *,
        concurrency: int,
        held: float,
        on_settled: Callable[[int], None],
    ) -> None:
        """`concurrency` is how many messages are claimed, sent and settled at once through a transport that takes
        many. `held` is for how many seconds other workers leave a claim alone."""
        self._held = held
        self._store = store
        self._connections = connections
        self._sender = sender
        self._rate = DeliveryRate(store, connections)
        self._claims: Coalescer[Timed, tuple[Claim | None, Sent]] = Coalescer(
            self._claim_and_send if sender.sends_many else self._claim_only,
            min(_AT_ONCE, concurrency),
            together=True,
            calls=max(1, concurrency // _AT_ONCE),
        )
        self._asides: Coalescer[str, None] = Coalescer(self._set_aside, _AT_ONCE, together=True)
        self._settlements: Coalescer[Settlement, Settled | None] = Coalescer(self._settle, _AT_ONCE, together=True)
        self._on_settled = on_settled

    async def __call__(self, job: ActiveJob[Any]) -> dict[str, Any]:
        asked = SendMessage.of(job.data)
        try:
            slot = await self._rate.slot(asked.campaign_id)
            if slot is None:
                await self._asides.put(asked.job_id)
                return {"status": "TOO_EARLY"}
            claim, sent = await self._claims.put((asked, slot))
        except _AWAY as error:  # nothing was sent
            raise Snooze(_TRY_AGAIN, f"the database is unavailable: {error}") from error
        if claim is None:
            return {"status": "SKIPPED"}
        if sent is None:
            if is_late(slot) and not await self._has_slot(asked.campaign_id):
                await self._settlements.put(Settlement(claim, Outcome.RELEASED))
                return {"status": "TOO_EARLY"}
            sent = await self._send(asked, claim)
        if isinstance(sent, TransportError):
            return await self._failed(claim, sent)
        return _answer(sent)

    async def _has_slot(self, campaign_id: str) -> bool:
        """Waits for a slot of the campaign. Returns False if none is near, or the database is away."""
        try:
            return await self._rate.slot(campaign_id) is not None
        except _AWAY:
            return False

    async def _claim_only(self, asked: Sequence[Timed]) -> Sequence[tuple[Claim | None, Sent]]:
        return [(claim, None) for claim in await self._claim([one for one, _ in asked])]

    async def _claim_and_send(self, asked: Sequence[Timed]) -> Sequence[tuple[Claim | None, Sent]]:
        """Claims messages, sends them in one call, and settles those that were sent. One whose slot is over by then is
        left to its caller."""
        claims = await self._claim([one for one, _ in asked])
        outcomes: list[Sent] = [None] * len(asked)
        messages: dict[int, Message] = {}
        for place, ((one, slot), claim) in enumerate(zip(asked, claims, strict=True)):
            if claim is not None and not is_late(slot):
                try:
                    messages[place] = one.message(claim)
                except InvalidOption as error:
                    outcomes[place] = _no_message(error)
        sent: Sequence[Sent] = ()
        if messages:
            try:
                sent = await self._sender.send_many(list(messages.values()))
            except TransportError as error:
                sent = [error] * len(messages)
            else:
                await self._settle_sent([claim for place in messages if (claim := claims[place]) is not None])
        for place, one in zip(messages, sent, strict=True):
            outcomes[place] = one
        return list(zip(claims, outcomes, strict=True))

    async def _send(self, asked: SendMessage, claim: Claim) -> Receipt | TransportError:
        """Sends one message by itself, and settles it if it was sent."""
        try:
            receipt = await self._sender.send(asked.message(claim))
        except InvalidOption as error:
            return _no_message(error)
        except TransportError as error:
            return error
        await self._settlements.put(Settlement(claim, Outcome.SENT))
        return receipt

    async def _failed(self, claim: Claim, error: TransportError) -> dict[str, Any]:
        """Settles a message that was not sent. Raises Snooze if it is to be sent later."""
        match error:
            case FloodWait(channel_only=True):
                await self._settlements.put(Settlement(claim, Outcome.RELEASED, delay=error.seconds))
                raise Snooze(error.seconds, _text(error))
            case FloodWait():
                # The pause comes first: the row must not be fed again before it.
                await self._pause(claim, error)
                await self._settlements.put(Settlement(claim, Outcome.RELEASED))
                return {"status": "WAITING", "error": _text(error)}
            case PeerBlocked() if claim.mode != "TEST":
                return await self._block(claim, error)
            case TransportBroken():
                await self._break(claim, error)
                await self._settlements.put(Settlement(claim, Outcome.RELEASED))
                return {"status": "WAITING", "error": _text(error)}
            case PeerBlocked() | Permanent():
                await self._settlements.put(Settlement(claim, Outcome.FAILED, _text(error)))
                return {"status": JobStatus.FAILED, "error": _text(error)}
            case _:
                delay = backoff(claim.attempt)
                settled = await self._settlements.put(Settlement(claim, Outcome.RETRY, _text(error), delay))
                if settled is not None and settled.status is JobStatus.QUEUED:
                    raise Snooze(delay, _text(error))
                return {"status": JobStatus.FAILED, "error": _text(error)}

    async def _pause(self, claim: Claim, error: FloodWait) -> None:
        async def pause() -> None:
            async with self._connections.use() as connection:
                paused = await self._store.campaigns.wait_for_flood(connection, claim.campaign_id, error.seconds)
            if paused is not None:
                logger.warning("campaign %s waits until %s: %s", claim.campaign_id, paused.paused_until, error)

        await _until_done(pause)

    async def _break(self, claim: Claim, error: TransportBroken) -> None:
        async def fail() -> None:
            async with self._connections.use() as connection:
                if await self._store.campaigns.fail_if_running(connection, claim.campaign_id, _text(error)):
                    logger.error("campaign %s has failed: %s", claim.campaign_id, error)

        await _until_done(fail)

    async def _block(self, claim: Claim, error: PeerBlocked) -> dict[str, Any]:
        async def block() -> None:
            async with self._connections.use() as connection, connection.transaction():
                if await self._store.jobs.failed_by_block(connection, claim, _text(error)):
                    await self._store.channels.block(connection, claim.channel_id, _text(error))

        await _until_done(block)
        self._on_settled(1)
        return {"status": JobStatus.FAILED, "error": _text(error)}

    async def _claim(self, asked: Sequence[SendMessage]) -> Sequence[Claim | None]:
        job_ids = [one.job_id for one in asked]
        async with self._connections.use() as connection:
            claims = await self._store.jobs.claim_many(connection, list(dict.fromkeys(job_ids)), held=self._held)
            refused = [job_id for job_id in job_ids if job_id not in claims]
            if refused:
                await self._store.jobs.set_aside(connection, refused)
        # Two jobs of the queue may be about one row: one of them gets the claim.
        return [claims.pop(job_id, None) for job_id in job_ids]

    async def _set_aside(self, job_ids: Sequence[str]) -> Sequence[None]:
        async with self._connections.use() as connection:
            await self._store.jobs.set_aside(connection, job_ids)
        return [None] * len(job_ids)

    async def _settle_sent(self, claims: Sequence[Claim]) -> None:
        async def settle() -> None:
            async with self._connections.use() as connection:
                await self._store.jobs.settle_sent(connection, claims)

        await _until_done(settle)
        self._on_settled(len(claims))

    async def _settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled | None]:
        settled: dict[str, Settled] = {}

        async def settle() -> None:
            nonlocal settled
            async with self._connections.use() as connection:
                settled = await self._store.jobs.settle(connection, settlements)

        await _until_done(settle)
        self._on_settled(len(settlements))
        return [settled.get(one.claim.job_id) for one in settlements]


async def _until_done(act: Callable[[], Awaitable[None]]) -> None:
    """Repeats an act until the database has taken it. The message is sent already, and a second settle of the same
    claim changes nothing."""
    while True:
        try:
            return await act()
        except _AWAY as error:
            logger.warning("the outcome of a message can't be stored, which is tried again: %s", error)
            await asyncio.sleep(_TRY_AGAIN)


def backoff(attempt: int) -> float:
    """Returns the seconds between an attempt and the next one.

    >>> [backoff(attempt) for attempt in (1, 2, 3, 10, 11, 1001)]
    [5.0, 10.0, 20.0, 2560.0, 3600.0, 3600.0]
    """
    doublings = min(attempt - 1, 20)  # a float can't be doubled a thousand times
    return min(RETRY_DELAY * 2.0**doublings, LONGEST_BACKOFF)


def _text(error: TransportError) -> str:
    """Returns the text that is stored with a message: the reason's code, by which reports count, and the sentence. A
    subclass of a transport's own may have no reason, or a text that no database can hold."""
    reason = reason_code(str(getattr(error, "reason", None) or "")) or error.REASON
    return readable(f"{reason}: {error}")


def _no_message(error: InvalidOption) -> Permanent:
    """Returns the error of a payload that makes no message."""
    return Permanent(str(error), reason="INVALID_MESSAGE")


def _answer(receipt: Receipt) -> dict[str, Any]:
    # The text and not the member of the enumeration, which takes four times as long to encode.
    status = JobStatus.SENT.value
    return {"status": status} if receipt.id is None else {"status": status, "receipt": receipt.id}
