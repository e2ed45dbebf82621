"""The outbox has each message once, whatever happens to it and to its index."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import resource
import signal
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from campaigns.transports.messages import message
from jobwire.campaigns.transports import Receipt, Retryable, Sender, TransportBroken, TransportError, transport_of
from jobwire.campaigns.transports.outbox import OutboxTransport


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    """Returns the file's lines. Each must be whole."""
    text = path.read_text()
    assert text.endswith("\n") or not text
    return [json.loads(line) for line in text.splitlines()]


async def send(path: Path, number: int = 1, **changes: Any) -> Receipt:
    """Sends one message through a new transport, as after a restart."""
    async with Sender(transport_of(f"outbox:{path}")) as sender:
        return await sender.send(message(number, **changes))


async def test_a_message_is_one_line_with_every_field(path: Path) -> None:
    receipt = await send(
        path, text="one\ntwo ✓", media_type="PHOTO", media_url="https://example.com/a.jpg", mode="TEST"
    )
    [line] = lines(path)
    assert (line.pop("id"), datetime.fromisoformat(line.pop("at"))) == (receipt.id, receipt.at)
    assert line == {
        "idempotencyKey": "spring/job-1",
        "jobId": "job-1",
        "campaignId": "spring",
        "channelId": "channel-1",
        "channelUsername": "@channel1",
        "text": "one\ntwo ✓",
        "attempt": 1,
        "mode": "TEST",
        "mediaType": "PHOTO",
        "mediaUrl": "https://example.com/a.jpg",
    }


async def test_a_key_that_was_sent_gets_its_first_receipt(path: Path) -> None:
    async with OutboxTransport(str(path)) as transport:
        first = await transport.send(message(1))
        await transport.send(message(2))
        assert await transport.send(message(1, attempt=2, text="changed")) == first
    assert await send(path, 1) == first
    assert [line["jobId"] for line in lines(path)] == ["job-1", "job-2"]


async def test_sends_at_the_same_time_write_each_key_once(path: Path) -> None:
    transports = [OutboxTransport(str(path)) for _ in range(3)]
    receipts = await asyncio.gather(*(one.send(message(n)) for n in range(1, 31) for one in transports))
    assert len({receipt.id for receipt in receipts}) == 30
    assert sorted(line["jobId"] for line in lines(path)) == sorted(f"job-{n}" for n in range(1, 31))
    for one in transports:
        await one.__aexit__(None, None, None)


@pytest.mark.parametrize("torn", ['{"id":"abc","at":"2025', "x" * 3_000_000, "\x00" * 20])
@pytest.mark.parametrize("before", [0, 2])
async def test_a_torn_last_line_is_cut_off(path: Path, torn: str, before: int) -> None:
    receipts = [await send(path, n) for n in range(1, before + 1)]
    with path.open("a") as file:
        file.write(torn)
    receipts.append(await send(path, before + 1))
    assert [line["id"] for line in lines(path)] == [one.id for one in receipts]


@pytest.mark.parametrize("damage", ["delete", "garbage", "half", "other tables", "newer", "of another outbox"])
async def test_an_index_that_is_lost_or_damaged_is_made_again(path: Path, damage: str) -> None:
    receipts = [await send(path, n) for n in range(1, 200)]
    index = path.with_name("out.jsonl.index")
    match damage:
        case "delete":
            index.unlink()
        case "garbage":
            index.write_bytes(os.urandom(index.stat().st_size))
        case "half":
            os.truncate(index, index.stat().st_size // 2)
        case "other tables":
            index.unlink()
            database = sqlite3.connect(index)
            database.execute("create table a (b)")
            database.close()
        case "newer":
            database = sqlite3.connect(index)
            database.execute("pragma user_version = 9")
            database.close()
        case _:
            other = path.with_name("other.jsonl")
            await send(other, 5)
            index.write_bytes(other.with_name("other.jsonl.index").read_bytes())
    assert [await send(path, n) for n in (1, 100, 199)] == [receipts[0], receipts[99], receipts[198]]
    assert len(lines(path)) == 199


async def test_an_index_that_is_damaged_while_it_is_open_is_made_again(path: Path) -> None:
    async with OutboxTransport(str(path)) as one, OutboxTransport(str(path)) as two:
        receipts = [await one.send(message(n)) for n in range(1, 100)]
        index = path.with_name("out.jsonl.index")
        index.write_bytes(os.urandom(index.stat().st_size))
        assert await two.send(message(50)) == receipts[49]
        index.unlink()
        assert [await each.send(message(7)) for each in (one, two, one)] == [receipts[6]] * 3
        assert await one.send(message(100)) == await two.send(message(100))
    assert len(lines(path)) == 100


async def test_a_line_that_was_changed_by_hand_is_not_taken_for_another(path: Path) -> None:
    async with OutboxTransport(str(path)) as transport:
        await transport.send(message(1))
        second = await transport.send(message(2))
        path.write_bytes(path.read_bytes().replace(b"spring/job-1", b"summer/job-1"))
        assert (await transport.send(message(1))).id not in (None, second.id)
        assert await transport.send(message(2)) == second
    assert [line["idempotencyKey"] for line in lines(path)] == ["summer/job-1", "spring/job-2", "spring/job-1"]


async def test_lines_that_are_not_messages_are_kept_and_skipped(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text('# a note\n{"id": 1}\n[]\n\n{"idempotencyKey": 3, "id": "", "at": "2025-01-01"}\n')
    first = await send(path, 1)
    assert await send(path, 1) == first
    assert path.read_text().startswith("# a note\n")
    assert caplog.text.count("is not a message") == 5


async def test_a_file_that_was_moved_away_is_begun_again(path: Path) -> None:
    async with OutboxTransport(str(path)) as transport:
        await transport.send(message(1))
        path.rename(path.with_name("old.jsonl"))
        await transport.send(message(2))
        await transport.send(message(2))
    assert [line["jobId"] for line in lines(path)] == ["job-2"]
    assert [line["jobId"] for line in lines(path.with_name("old.jsonl"))] == ["job-1"]


async def test_a_file_that_was_emptied_is_begun_again(path: Path) -> None:
    async with OutboxTransport(str(path)) as transport:
        await transport.send(message(1))
        os.truncate(path, 0)
        await transport.send(message(1))
        await transport.send(message(2))
    assert [line["jobId"] for line in lines(path)] == ["job-1", "job-2"]


async def test_a_transport_that_was_closed_opens_again(path: Path) -> None:
    transport = OutboxTransport(str(path))
    async with transport:
        first = await transport.send(message(1))
    assert await transport.send(message(1)) == first
    await transport.__aexit__(None, None, None)


async def test_fsync_forces_each_line_to_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[int] = []
    force = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (forced.append(os.fstat(file).st_size), force(file)))
    async with Sender(transport_of(f"outbox:{path}?fsync=true")) as sender:
        await sender.send(message(1))
    assert forced == [path.stat().st_size]
    await send(path, 2)
    assert len(forced) == 1


async def test_a_file_that_stays_locked_is_retryable(path: Path) -> None:
    async with Sender(OutboxTransport(str(path), lock_timeout=0.05)) as sender:
        with path.open("a") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(Retryable, match="was locked by another process") as caught:
                await sender.send(message(1))
        assert caught.value.reason == "OUTBOX_LOCKED"
        await sender.send(message(1))
    assert len(lines(path)) == 1


@pytest.mark.parametrize("where", ["no/such/folder/out.jsonl", "."])
async def test_a_file_that_cannot_be_opened_breaks_the_transport(tmp_path: Path, where: str) -> None:
    with pytest.raises(TransportBroken, match="can't open"):
        async with Sender(OutboxTransport(str(tmp_path / where))):
            pass


async def test_a_full_disk_is_retryable_and_leaves_no_part_of_a_line(path: Path) -> None:
    path.write_text("#" * 999_999 + "\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        async with Sender(OutboxTransport(str(path))) as sender:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_100, before[1]))
            for _ in range(2):
                with pytest.raises(TransportError) as caught:
                    await sender.send(message(1))
                assert (type(caught.value), caught.value.reason) == (Retryable, "OUTBOX_UNWRITABLE")
                assert path.stat().st_size == 1_000_000
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            await sender.send(message(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_text().count("\n") == 2
