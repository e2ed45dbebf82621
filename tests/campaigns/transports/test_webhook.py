"""A webhook is signed, and every answer to it counts as what it is."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from campaigns.transports.messages import message
from campaigns.transports.receiver import Answer, http, receiver
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
from jobwire.campaigns.transports.webhook import LONGEST_RESPONSE, WebhookTransport
from jobwire.campaigns.transports.webhook_signature import is_signed

SECRET = "a secret of the tests"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def send(url: str, timeout: float = 20, **changes: Any) -> Receipt:
    async with Sender(WebhookTransport(url, secret=SECRET, timeout=timeout)) as sender:
        return await sender.send(message(**changes))


async def failing(answer: Answer, timeout: float = 20) -> TransportError:
    async with receiver(answer) as server:
        with pytest.raises(TransportError) as caught:
            await send(server.url, timeout)
    assert len(server.requests) == 1
    return caught.value


async def test_the_request_has_the_message_its_key_and_a_signature() -> None:
    async with receiver(http("200 OK", b'{"id": "m-1"}')) as server:
        receipt = await send(server.url + "?team=7", text="Grüße ✓", attempt=2)
    [request] = server.requests
    assert receipt.id == "m-1"
    assert request.first == "POST /hook?team=7 HTTP/1.1"
    assert json.loads(request.body) == message(text="Grüße ✓", attempt=2).fields()
    headers = request.headers
    assert headers["content-type"] == "application/json"
    assert headers["idempotency-key"] == "spring/job-1"
    stamp, signed = headers["jobwire-timestamp"], headers["jobwire-signature"]
    assert is_signed(SECRET, stamp, request.body, signed, now=time.time())
    assert not is_signed(SECRET, stamp, request.body + b" ", signed, now=time.time())
    assert not is_signed(SECRET, str(int(stamp) + 1), request.body, signed, now=time.time())
    assert not is_signed("another secret!!", stamp, request.body, signed, now=time.time())
    assert not is_signed(SECRET, stamp, request.body, signed, now=time.time() + 301)
    assert not is_signed(SECRET, "²", request.body, "v1=é", now=time.time())


async def test_a_key_that_a_header_cannot_hold_is_percent_encoded() -> None:
    async with receiver(http("204 No Content")) as server:
        await send(server.url, idempotency_key="a b\r\nX: é%")
    assert server.requests[0].headers["idempotency-key"] == "a%20b%0D%0AX:%20%C3%A9%25"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"id": "abc"}', "abc"),
        (b'{"id": 17}', "17"),
        (b'{"id": null}', None),
        (b'{"id": {"a": 1}}', None),
        (b'{"id": true}', None),
        (b'["id"]', None),
        (b"ok", None),
        (b"", None),
        (b"\xff\xfe", None),
    ],
)
async def test_the_id_of_a_receipt_is_optional(body: bytes, found: str | None) -> None:
    async with receiver(http("202 Accepted", body)) as server:
        assert (await send(server.url)).id == found


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("400 Bad Request", Permanent),
        ("401 Unauthorized", TransportBroken),
        ("403 Forbidden", Permanent),
        ("404 Not Found", Permanent),
        ("407 Proxy Authentication Required", TransportBroken),
        ("408 Request Timeout", Retryable),
        ("409 Conflict", Retryable),
        ("410 Gone", PeerBlocked),
        ("413 Content Too Large", Permanent),
        ("422 Unprocessable Content", Permanent),
        ("425 Too Early", Retryable),
        ("429 Too Many Requests", FloodWait),
        ("500 Internal Server Error", Retryable),
        ("502 Bad Gateway", Retryable),
        ("503 Service Unavailable", Retryable),
        ("504 Gateway Timeout", Retryable),
    ],
)
async def test_each_status_counts_as_the_table_has_it(status: str, kind: type[TransportError]) -> None:
    error = await failing(http(status, b"because\n of  this"))
    assert (type(error), error.reason) == (kind, f"HTTP_{status[:3]}")
    assert f"answered {status}: because of this" in str(error)


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
async def test_a_retry_after_is_a_flood_wait(status: str) -> None:
    error = await failing(http(status, b"", "Retry-After: 17"))
    assert isinstance(error, FloodWait)
    assert error.seconds == 17


async def test_a_retry_after_may_be_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    error = await failing(http("429 Too Many Requests", b"", f"Retry-After: {later}"))
    assert isinstance(error, FloodWait)
    assert 3000 < error.seconds <= 3600


@pytest.mark.parametrize(("value", "seconds"), [("soon", 60), ("-3", 60), ("99999999999999999999", 604800), ("0", 1)])
async def test_an_odd_retry_after_is_bounded(value: str, seconds: float) -> None:
    error = await failing(http("429 Too Many Requests", b"", f"Retry-After: {value}"))
    assert isinstance(error, FloodWait)
    assert error.seconds == seconds


@pytest.mark.parametrize(
    "status", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
)
async def test_a_redirect_is_not_followed(status: str) -> None:
    async with receiver(http("200 OK")) as other:
        error = await failing(http(status, b"", f"Location: {other.url}"))
    assert (type(error), other.requests) == (TransportBroken, [])
    assert "redirects are not followed" in str(error)


async def test_a_server_that_hangs_is_retryable() -> None:
    async def hang(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    error = await failing(hang, timeout=0.1)
    assert (type(error), error.reason) == (Retryable, "TIMEOUT")


async def test_a_server_that_sends_a_byte_at_a_time_is_ended_at_the_time_limit() -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    error = await failing(drip, timeout=0.3)
    assert (type(error), error.reason) == (Retryable, "TIMEOUT")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConte", id="half of the headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", id="less than its length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", id="half a chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", id="a negative length"),
        pytest.param(b"220 mail.example.com ESMTP\r\n", id="another protocol"),
    ],
)
async def test_a_broken_response_is_retryable(answer: bytes) -> None:
    error = await failing(answer)
    assert (type(error), error.reason) == (Retryable, "BROKEN_RESPONSE")


async def test_a_response_longer_than_its_length_counts_by_its_status() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" + b"x" * 5000
    async with receiver(answer) as server:
        assert (await send(server.url)).id is None


async def test_a_long_response_is_not_read_to_its_end() -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    async with receiver(endless) as server:
        assert (await send(server.url)).id is None
    assert LONGEST_RESPONSE <= sent < 64 * LONGEST_RESPONSE


async def test_a_compressed_response_is_not_unpacked() -> None:
    async with receiver(http("200 OK", b"\x1f\x8b" + b"x" * 100, "Content-Encoding: gzip")) as server:
        assert (await send(server.url)).id is None
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_a_port_where_nothing_listens_is_retryable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(Retryable, match=r"no connection to 127\.0\.0\.1") as caught:
            await send(f"http://127.0.0.1:{free.getsockname()[1]}/T0KEN")
    assert caught.value.reason == "CONNECTION"
    assert "T0KEN" not in str(caught.value)


async def test_a_server_without_tls_behind_https_is_retryable() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(http("400 Bad Request"))
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        with pytest.raises(Retryable) as caught:
            await send(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert caught.value.reason == "CONNECTION"
    assert "SSL" in str(caught.value)


async def test_neither_the_url_nor_the_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with receiver(http("200 OK")) as server:
        await send(server.url + "/T0KEN?key=T1KEN")
    assert [one for one in ("T0KEN", "T1KEN", SECRET) if one in caplog.text] == []


async def test_other_requests_of_httpx_are_logged_as_usual(caplog: pytest.LogCaptureFixture) -> None:
    import httpx

    caplog.set_level(logging.INFO)
    async with receiver(http("200 OK")) as server, httpx.AsyncClient() as client:
        await send(server.url)
        await client.get(server.url + "/other")
    assert [record.getMessage() for record in caplog.records if record.name == "httpx"] == [
        f'HTTP Request: GET {server.url}/other "HTTP/1.1 200 OK"'
    ]


async def test_test_mode_makes_no_request() -> None:
    async with receiver(http("200 OK")) as server:
        assert (await send(server.url, mode="TEST")).id is None
    assert server.requests == []


async def test_many_messages_at_once_through_one_client() -> None:
    async with (
        receiver(http("200 OK", b'{"id": 1}')) as server,
        Sender(WebhookTransport(server.url, secret=SECRET)) as sender,
    ):
        await asyncio.gather(*(sender.send(message(n)) for n in range(1, 201)))
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert sorted(keys) == sorted(f"spring/job-{n}" for n in range(1, 201))
