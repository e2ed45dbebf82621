"""Whatever a transport does, its caller gets a receipt or one of five errors, in time."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any

import pytest

from campaigns.scripted_transport import HANG, Lie, ScriptedTransport, Stubborn, Wait
from campaigns.transports.messages import message
from jobwire.campaigns.transports import (
    FloodWait,
    PeerBlocked,
    Permanent,
    Receipt,
    Retryable,
    Sender,
    TransportBroken,
    TransportError,
)
from jobwire.errors import InvalidOption, MissingExtra


def scripted(*cues: Any) -> ScriptedTransport:
    return ScriptedTransport(default=cues)


async def failing(transport: Any, **options: Any) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await Sender(transport, **options).send(message())
    return caught.value


async def test_a_receipt_is_returned_and_the_transport_is_opened_once() -> None:
    transport = ScriptedTransport()
    async with Sender(transport) as sender:
        receipts = await asyncio.gather(*(sender.send(message(n)) for n in range(1, 4)))
    assert sorted(one.id or "" for one in receipts) == ["channel-1-1", "channel-2-2", "channel-3-3"]
    assert (transport.opened, transport.closed) == (1, 1)


async def test_a_class_with_one_method_is_enough() -> None:
    class Small:
        async def send(self, _message: Any) -> Receipt:
            return Receipt("x")

    async with Sender(Small()) as sender:
        assert (await sender.send(message())).id == "x"


@pytest.mark.parametrize("kind", [PeerBlocked, Permanent, Retryable, TransportBroken])
async def test_the_errors_of_the_contract_arrive_as_they_are(kind: type[TransportError]) -> None:
    raised = kind("no", reason="BECAUSE")
    error = await failing(scripted(raised))
    assert error is raised
    assert error.__cause__ is None


async def test_any_other_error_is_retryable_and_logged_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    error = await failing(scripted(RuntimeError("no route to https://me:hunter2@example.com")))
    assert isinstance(error, Retryable)
    assert (error.reason, str(error)) == (
        "UNEXPECTED",
        "ScriptedTransport raised RuntimeError: no route to https://me:***@example.com",
    )
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "Traceback" in caplog.text
    assert "hunter2" not in caplog.text


async def test_the_base_class_of_the_errors_is_retryable() -> None:
    error = await failing(scripted(TransportError("?", reason="ODD")))
    assert (type(error), error.reason) == (Retryable, "ODD")


@pytest.mark.parametrize(
    ("asked", "waits"),
    [
        (30, 30),
        (0, 1),
        (-7, 1),
        (math.nan, 60),
        (math.inf, 604800),
        pytest.param(10**400, 604800, id="10**400"),
        ("soon", 60),
        (None, 60),
    ],
)
async def test_the_time_of_a_flood_wait_is_bounded(asked: Any, waits: float) -> None:
    error = await failing(scripted(FloodWait(asked, "slow down", reason="SLOW")))
    assert isinstance(error, FloodWait)
    assert (error.seconds, str(error), error.reason) == (waits, "slow down", "SLOW")


@pytest.mark.parametrize("value", [None, True, "sent", {"id": 1}, Receipt])
async def test_a_transport_that_returns_no_receipt_is_retryable(value: Any) -> None:
    error = await failing(scripted(Lie(value)))
    assert (type(error), error.reason) == (Retryable, "NOT_A_RECEIPT")
    assert "instead of a Receipt" in str(error)


async def test_a_transport_that_hangs_is_cancelled_at_the_time_limit() -> None:
    error = await failing(scripted(HANG), timeout=0.05)
    assert (type(error), error.reason) == (Retryable, "TIMEOUT")
    assert str(error) == "ScriptedTransport did not send job job-1 within 0.05 s"


async def test_a_transport_that_ignores_its_cancellation_is_left_behind(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobwire.campaigns.transports.sender._GRACE", 0.05)
    stubborn = Stubborn()
    sender = Sender(scripted(stubborn), timeout=0.05)
    with pytest.raises(Retryable, match="did not send"):
        await sender.send(message(1))
    assert "ignores its cancellation" in caplog.text
    stubborn.go.set()
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0)


async def test_a_receipt_that_comes_just_after_the_time_limit_counts() -> None:
    class Late:
        async def send(self, _message: Any) -> Receipt:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return Receipt("late")
            raise AssertionError

    assert (await Sender(Late(), timeout=0.05).send(message())).id == "late"


async def test_a_transport_that_cancels_itself_does_not_cancel_its_caller() -> None:
    error = await failing(scripted(asyncio.CancelledError()))
    assert (type(error), error.reason) == (Retryable, "CANCELLED")


async def test_a_cancelled_caller_cancels_the_transport() -> None:
    wait = Wait()
    transport = scripted(wait)
    task = asyncio.create_task(Sender(transport).send(message()))
    await wait.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.sent == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_message_in_test_mode_reaches_no_channel() -> None:
    transport = ScriptedTransport()
    receipt = await Sender(transport).send(message(mode="TEST"))
    assert (receipt.id, transport.asked) == (None, [])


async def test_a_transport_that_only_records_gets_messages_in_test_mode() -> None:
    class Recorder(ScriptedTransport):
        records_only = True

    transport = Recorder()
    await Sender(transport).send(message(mode="TEST"))
    assert [one.mode for one in transport.sent] == ["TEST"]


@pytest.mark.parametrize(
    ("raised", "kind", "reason"),
    [
        (InvalidOption("api_id", 0, "must be positive"), TransportBroken, "MISCONFIGURED"),
        (MissingExtra("telegram:", "telegram"), TransportBroken, "MISCONFIGURED"),
        (TransportBroken("revoked", reason="SESSION_REVOKED"), TransportBroken, "SESSION_REVOKED"),
        (ConnectionRefusedError("no"), Retryable, "UNEXPECTED"),
        (TimeoutError(), Retryable, "TIMEOUT"),
    ],
)
async def test_a_transport_that_cannot_be_opened(raised: Exception, kind: type[TransportError], reason: str) -> None:
    class Closed(ScriptedTransport):
        async def __aenter__(self) -> Any:
            raise raised

    transport = Closed()
    with pytest.raises(kind) as caught:
        async with Sender(transport):
            pass
    assert (caught.value.reason, transport.closed) == (reason, 0)


async def test_an_option_refused_during_a_send_fails_one_attempt_and_not_the_campaign() -> None:
    error = await failing(scripted(InvalidOption("text", "", "must not be empty")))
    assert type(error) is Retryable


async def test_an_error_at_closing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(ScriptedTransport):
        async def __aexit__(self, *_: object) -> None:
            raise ConnectionResetError

    async with Sender(Stuck()) as sender:
        await sender.send(message())
    assert "the transport could not be closed" in caplog.text


async def test_an_object_without_send_is_refused() -> None:
    with pytest.raises(InvalidOption, match="must have a method send"):
        Sender(object())  # type: ignore[arg-type]


async def test_a_send_that_is_not_async_still_counts() -> None:
    class Blocking:
        def send(self, sent: Any) -> Receipt:
            if sent.attempt > 1:
                raise Permanent("no")
            return Receipt("1")

    sender = Sender(Blocking())  # type: ignore[arg-type]
    assert (await sender.send(message())).id == "1"
    with pytest.raises(Permanent):
        await sender.send(message(attempt=2))


class Together:
    """A transport that takes messages together. It answers with `answer(messages)`."""

    def __init__(self, answer: Any) -> None:
        self.calls: list[int] = []
        self._answer = answer

    async def send(self, _message: Any) -> Receipt:
        raise AssertionError("send_many is called instead")

    async def send_many(self, messages: Any) -> Any:
        self.calls.append(len(messages))
        return self._answer(messages)


async def test_many_messages_are_sent_in_one_call_and_those_of_test_mode_not_at_all() -> None:
    transport = Together(lambda messages: [Receipt(one.job_id) for one in messages])
    sender = Sender(transport)
    receipts = await sender.send_many([message(n, mode="LIVE" if n % 3 else "TEST") for n in range(1, 31)])
    assert [one.id for one in receipts] == [message(n).job_id if n % 3 else None for n in range(1, 31)]
    assert [one.id for one in await sender.send_many([message(mode="TEST")])] == [None]
    assert (await sender.send(message())).id == message().job_id
    assert transport.calls == [20, 1]


async def test_a_subclass_that_overrides_send_gets_each_message_there() -> None:
    class Picky(Together):
        async def send(self, message: Any) -> Receipt:
            if message.attempt > 1:
                raise PeerBlocked("no")
            [receipt] = await self.send_many([message])
            return receipt

    transport = Picky(lambda messages: [Receipt(one.job_id) for one in messages])
    sender = Sender(transport)
    sent = await asyncio.gather(
        sender.send(message(1)), sender.send(message(2, attempt=2)), sender.send(message(3)), return_exceptions=True
    )
    assert [type(one) for one in sent] == [Receipt, PeerBlocked, Receipt]
    assert transport.calls == [1, 1]


@pytest.mark.parametrize("answer", [None, [], [Receipt("a"), Receipt("b")], ["a"], "ab", 5])
async def test_receipts_that_do_not_fit_the_messages_are_retried(answer: Any) -> None:
    error = await failing(Together(lambda _: answer))
    assert isinstance(error, Retryable)
    assert error.reason == "NOT_A_RECEIPT"


async def test_an_error_of_a_call_is_the_error_of_all_its_messages() -> None:
    def refuse(_messages: Any) -> Any:
        raise Permanent("no", reason="BECAUSE")

    sender = Sender(Together(refuse))
    with pytest.raises(Permanent, match="no"):
        await sender.send_many([message(1), message(2)])
