"""Names, numbers and forms that both languages must compute alike."""

from __future__ import annotations

import pytest

from jobwire import AddStatus, NewJob, State, StoreRefused, connect
from jobwire import codec as json_codec
from jobwire.backends import uuid7
from jobwire.backends.pgboss import Boss, codec
from jobwire.backends.pgboss.connection import schema
from jobwire.backends.pgboss.produce import ids, native_options
from jobwire.boundary import Failed


def test_the_channel_and_the_locks_have_the_numbers_that_node_computes():
    assert schema.channel("pgboss") == "pgboss_454650302e472074f72063fd"
    assert schema.lock_key("t12", "pgboss") == 8478929699025248150
    assert schema.lock_key("t12", "pgboss", "create-queue") == 3929034066542529406


def test_new_ids_are_ids():
    assert all(ids.is_id(one) for one in [uuid7.new_id(), *uuid7.new_ids(1000)])


@pytest.mark.parametrize(
    "text", ["", "order-17", "6f1c2b9e1f6e4a539d0e0a4d5c6b7a80", "{6f1c2b9e-1f6e-4a53-9d0e-0a4d5c6b7a80}"]
)
def test_other_texts_are_no_ids(text):
    assert ids.is_id(text) is False


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, {}), (0, {"delay": 0.0}), (-5, {"delay": 0.0}), (90, {"delay": 90.0}), ("90", {"delay": 90.0}),
        ("2030-01-01", {"run_at": "2030-01-01Z"}), ("2030-01-01T10:00:00Z", {"run_at": "2030-01-01T10:00:00Z"}),
        ("2030-01-01 10:00+02:00", {"run_at": "2030-01-01 10:00+02:00"}), ("5 minutes", {"after": "5 minutes"}),
        ("PT1H", {"after": "PT1H"}),
    ],
)  # fmt: skip
def test_a_start_is_read_as_node_reads_it(given, meant):
    assert native_options.start_of(given) == meant


@pytest.mark.parametrize("value", ["plain", "\\u0000 as text", {"a\\b": "\\\\u0000"}, "é🚀", "\x01"])
def test_what_jsonb_holds_passes(value):
    assert codec.storable(json_codec.dumps(value))


@pytest.mark.parametrize("value", ["\x00", {"k\x00": 1}, ["\\", "\\\x00"], "\ud800", "a\udfff"])
def test_what_jsonb_can_not_hold_is_found(value):
    assert not codec.storable(json_codec.dumps(value))


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (None, None), ({"message": "no", "stack": "at x"}, "no"), ({"value": {"message": "late"}}, "late"),
        ({"value": "pg-boss shut down while active"}, "pg-boss shut down while active"), ({"code": 7}, '{"code":7}'),
        ({"value": 7}, "7"),
    ],
)  # fmt: skip
def test_an_error_is_found_in_every_form_that_clients_write(output, error):
    assert codec.error_of(output)[0] == error


@pytest.mark.parametrize(
    ("output", "result"), [(None, None), ({"value": [1]}, [1]), ({"value": {"a": 1}}, {"value": {"a": 1}}), ({}, {})]
)
def test_a_result_is_unwrapped(output, result):
    assert codec.result_of(output) == result


async def test_the_wait_before_a_retry_doubles_with_jitter_up_to_its_cap(queue, consume, rows):
    """From delay to twice the delay after the first failure, from twice to four times after the second, and so on."""
    options = {"retryLimit": 9, "retryDelay": 10, "retryBackoff": True}
    free = [(await queue.add(1, extra=options)).id for _ in range(8)]
    capped = (await queue.add(1, extra={**options, "retryDelayMax": 15})).id
    consumer = consume()
    waits: dict[str, list[float]] = {}
    for _ in range(4):
        claims = (await consumer.settle([], claim=20)).claims
        assert len(claims) == 9
        await consumer.settle([Failed(claim, "no") for claim in claims], claim=0)
        for row in await rows("SELECT id::text, extract(epoch FROM start_after - now())::float AS wait FROM job"):
            waits.setdefault(row["id"], []).append(row["wait"])
        await rows("UPDATE job SET start_after = now() RETURNING 1")
    for failures in range(4):
        seen = [waits[one][failures] for one in free]
        low, high = 10 * 2**failures, 20 * 2**failures
        assert all(low - 5 <= wait < high for wait in seen), (failures, seen)
        assert len(set(seen)) == len(seen)
    assert max(waits[capped]) <= 15


async def test_plain_jobs_keep_their_data_whatever_is_in_it(queue, rows):
    """They travel as one text, with a control character between them."""
    given = [None, "a\x1fb", {"k\x1f": "\x1f"}, "", [], {}, 0, "null", '"\\{}', "é🚀", [None]]
    added = await queue.add_many([NewJob(data) for data in given])
    assert [(await queue.get(job.id)).data for job in added] == given
    empty = await rows("SELECT id::text FROM job WHERE data IS NULL")
    assert [row["id"] for row in empty] == [added[0].id]


async def test_plain_jobs_and_others_are_stored_alike(queue, rows):
    await queue.add_many([NewJob("plain"), NewJob("plain")])
    await queue.add_many([NewJob("plain"), NewJob("plain", priority=0)])
    found = await rows(
        "SELECT to_jsonb(j) - ARRAY['id', 'created_on', 'start_after', 'keep_until']"
        " || jsonb_build_object('kept', keep_until - start_after, 'begun', start_after <= created_on) AS row FROM job j"
    )
    assert len(found) == 4
    assert all(one["row"] == found[0]["row"] for one in found), found


async def test_a_queue_that_was_made_anew_with_another_policy_is_noticed_by_a_producer_who_knew_the_old_one(queue, url):
    await queue.add(1)
    async with connect(url) as other:
        await Boss(other).delete_queue(queue.name)
        await Boss(other).create_queue(queue.name, policy="short")
    first, second = await queue.add_many([NewJob(1), NewJob(2)])
    assert (first.add_status, second.add_status) == (AddStatus.ADDED, AddStatus.THROTTLED)
    assert (await queue.counts())[State.WAITING] == 1


async def test_a_producer_is_told_that_its_queue_was_deleted(queue, url):
    await queue.add(1)
    async with connect(url) as other:
        await Boss(other).delete_queue(queue.name)
    with pytest.raises(StoreRefused, match="there is no queue"):
        await queue.add(2)
    with pytest.raises(StoreRefused, match="there is no queue"):
        await queue.add_many([NewJob(3), NewJob(4, priority=1)])
