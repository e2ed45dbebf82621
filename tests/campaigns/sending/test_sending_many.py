"""A transport that takes many messages in one call: they are claimed, sent and settled together."""

from __future__ import annotations

from campaigns.scripted_transport import ScriptedTransport
from jobwire.campaigns.sending import deliver, delivery_rate
from jobwire.campaigns.transports import FloodWait, Permanent, Retryable


class Together(ScriptedTransport):
    """Sends all messages of a call, unless there is an error left for the call."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self._errors = list(errors)
        self.calls: list[int] = []

    async def send_many(self, messages):
        self.calls.append(len(messages))
        if self._errors:
            raise self._errors.pop()
        return [await self.send(message) for message in messages]


async def _jobs(database):
    found = await database.execute(
        "SELECT status, attempts, error_message, count(*) FROM jobs GROUP BY 1, 2, 3 ORDER BY 1, 2"
    )
    return await found.fetchall()


async def test_messages_of_one_moment_share_a_call(service, campaign, working, reaches, database):
    made = await campaign(120)
    transport = Together()
    await service.start(made.id)
    async with working(transport, concurrency=50):
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.failed) == (120, 0)
    assert len({one.channel_id for one in transport.sent}) == len(transport.sent) == sum(transport.calls) == 120
    assert max(transport.calls) > 1
    assert await _jobs(database) == [("SENT", 1, None, 120)]


async def test_no_more_messages_are_claimed_than_may_be_sent_at_once(  # noqa: PLR0917 - fixtures
    service, campaign, working, reaches, database, monkeypatch
):
    # On a busy machine a claim may come too late for its slot. It is kept until the next slot, beside others.
    monkeypatch.setattr(delivery_rate, "LATEST", 60.0)

    class Looking(Together):
        claimed = 0

        async def send_many(self, messages):
            found = await database.execute("SELECT count(*) FROM jobs WHERE status = 'SENDING'")
            [(claimed,)] = await found.fetchall()
            self.claimed = max(self.claimed, claimed)
            return await super().send_many(messages)

    made = await campaign(300)
    transport = Looking()
    await service.start(made.id)
    async with working(transport, concurrency=20):
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, len(transport.sent)) == (300, 300)
    assert 0 < transport.claimed <= 20


async def test_an_error_of_a_call_is_that_of_each_of_its_messages(  # noqa: PLR0917 - fixtures
    service, campaign, working, reaches, database, monkeypatch
):
    monkeypatch.setattr(deliver, "RETRY_DELAY", 0.05)
    made = await campaign(40, retry_limit=1)
    transport = Together(Permanent("no", reason="REFUSED"), Retryable("slow"))
    await service.start(made.id)
    async with working(transport):
        done = await reaches(made.id, "COMPLETED")
    slow, refused = transport.calls[:2]
    assert (done.sent, done.failed) == (40 - refused, refused)
    by_status = {status: sum(count for one, *_, count in await _jobs(database) if one == status)
                 for status in ("SENT", "FAILED")}  # fmt: skip
    assert by_status == {"SENT": 40 - refused, "FAILED": refused}
    assert sum(transport.calls) == 40 + slow
    found = await database.execute("SELECT DISTINCT error_message FROM jobs WHERE status = 'FAILED'")
    assert await found.fetchall() == [("REFUSED: no",)]


async def test_a_flood_of_a_call_costs_none_of_its_messages_an_attempt(service, campaign, working, reaches, database):
    made = await campaign(30)
    await service.start(made.id)
    async with working(Together(FloodWait(1))):
        assert (await reaches(made.id, "PAUSED")).paused_reason == "FLOOD_WAIT"
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.failed) == (30, 0)
    assert await _jobs(database) == [("SENT", 1, None, 30)]


async def test_a_payload_that_makes_no_message_fails_alone(service, campaign, working, reaches, database):
    made = await campaign(10)
    await database.execute("UPDATE channels SET category = 'news' WHERE id <> 'ch1_4'")
    await database.execute("UPDATE templates SET content = '{category}'")  # by another program, which checks nothing
    await service.start(made.id)
    transport = Together()
    async with working(transport):
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.failed, len(transport.sent)) == (9, 1, 9)
    found = await database.execute("SELECT channel_id, error_message FROM jobs WHERE status = 'FAILED'")
    [(channel, error)] = await found.fetchall()
    assert channel == "ch1_4"
    assert error.startswith("INVALID_MESSAGE: text:")
