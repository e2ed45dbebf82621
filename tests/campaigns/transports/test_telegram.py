"""What is asked of Telethon's client, and what becomes of its answers. The client is scripted: requests, answers and
errors are Telethon's own."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any
from zlib import crc32

import pytest
from telethon import TelegramClient, errors, functions, types

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
    transport_of,
)
from jobwire.campaigns.transports import telegram as telegram_module
from jobwire.campaigns.transports.telegram import TelegramTransport

Resolve = functions.contacts.ResolveUsernameRequest
SendMessage = functions.messages.SendMessageRequest
SendMedia = functions.messages.SendMediaRequest


class ScriptedClient:
    """Answers requests as Telegram would, and raises the errors of its script first."""

    def __init__(self, **errors_of: list[Any]) -> None:
        self.requests: list[Any] = []
        self.connected = False
        self.connects = 0
        self._errors = errors_of

    async def connect(self) -> None:
        self._fail("connect")
        self.connects += 1
        self.connected = True

    def is_connected(self) -> bool:
        return self.connected

    async def disconnect(self) -> None:
        self.connected = False

    async def __call__(self, request: Any) -> Any:
        bytes(request)  # as Telethon does: refuses values of wrong types
        self.requests.append(request)
        if isinstance(request, functions.updates.GetStateRequest):
            self._fail("state")
            return types.updates.State(1, 1, None, 1, 0)
        if isinstance(request, Resolve):
            self._fail("resolve")
            number = sum(map(ord, request.username)) + len(self.of(Resolve))
            channel = types.Channel(
                number, request.username, types.ChatPhotoEmpty(), None, access_hash=1000 + number, broadcast=True
            )
            return types.contacts.ResolvedPeer(types.PeerChannel(number), [channel], [])
        self._fail("send")
        return types.Updates([types.UpdateMessageID(len(self.requests), request.random_id)], [], [], None, 0)

    def of(self, kind: type[Any]) -> list[Any]:
        return [one for one in self.requests if isinstance(one, kind)]

    def _fail(self, step: str) -> None:
        cues = self._errors.get(step)
        if cues and (cue := cues.pop(0)) is not None:
            if isinstance(cue, ConnectionError):
                self.connected = False
            raise cue if isinstance(cue, Exception) else cue(None)


async def send(client: ScriptedClient, *messages: Any, **options: Any) -> list[Receipt]:
    async with Sender(TelegramTransport(client=client, **options)) as sender:
        return [await sender.send(one) for one in messages or (message(),)]


async def failing(client: ScriptedClient, **options: Any) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await send(client, **options)
    return caught.value


async def test_text_is_sent_as_it_is_without_a_preview() -> None:
    client = ScriptedClient()
    [receipt] = await send(client, message(text="*not bold* https://example.com"))
    [request] = client.of(SendMessage)
    assert (request.message, request.entities, request.no_webpage) == ("*not bold* https://example.com", None, True)
    assert isinstance(request.peer, types.InputPeerChannel)
    assert client.of(Resolve)[0].username == "channel1"
    assert receipt.id == "3"
    assert client.connected is False


async def test_previews_and_a_parse_mode_are_there_on_request() -> None:
    client = ScriptedClient()
    await send(client, message(text="<b>bold</b> text"), link_preview=True, parse_mode="html")
    [request] = client.of(SendMessage)
    assert (request.message, request.no_webpage) == ("bold text", False)
    assert [type(one) for one in request.entities] == [types.MessageEntityBold]
    await send(client, message(text="**bold** text"), parse_mode="markdown")
    assert client.of(SendMessage)[1].message == "bold text"


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("PHOTO", types.InputMediaPhotoExternal),
        ("VIDEO", types.InputMediaDocumentExternal),
        ("DOCUMENT", types.InputMediaDocumentExternal),
    ],
)
async def test_media_are_sent_by_their_type_with_a_caption(media_type: str, kind: type[Any]) -> None:
    client = ScriptedClient()
    await send(client, message(text="look", media_type=media_type, media_url="https://example.com/file"))
    [request] = client.of(SendMedia)
    assert (type(request.media), request.media.url, request.message) == (kind, "https://example.com/file", "look")
    assert client.of(SendMessage) == []


async def test_each_attempt_at_a_message_has_the_same_number_and_each_message_another() -> None:
    client = ScriptedClient()
    await send(client, message(1), message(1, attempt=2), message(2))
    first, second, other = [one.random_id for one in client.of(SendMessage)]
    assert first == second != other


async def test_a_message_that_telegram_has_already_counts_as_sent() -> None:
    client = ScriptedClient(send=[errors.RandomIdDuplicateError])
    [receipt] = await send(client)
    assert receipt.id is None


async def test_the_id_of_a_short_answer_is_found() -> None:
    class Short(ScriptedClient):
        async def __call__(self, request: Any) -> Any:
            answer = await super().__call__(request)
            return types.UpdateShortSentMessage(77, 1, 1, None) if isinstance(request, SendMessage) else answer

    assert [one.id for one in await send(Short())] == ["77"]


async def test_a_channel_is_resolved_once_whatever_the_form_of_its_name() -> None:
    client = ScriptedClient()
    names = ["@News", "news", "https://t.me/NEWS", "t.me/news/"]
    await send(client, *(message(n, channel_username=name) for n, name in enumerate(names, 1)))
    assert [one.username for one in client.of(Resolve)] == ["news"]
    assert len(client.of(SendMessage)) == 4


async def test_remembered_channels_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telegram_module, "REMEMBERED", 3)
    client = ScriptedClient()
    transport = TelegramTransport(client=client)
    for number in (1, 2, 3, 1, 4, 1, 2):
        await transport.send(message(number))
    assert [one.username for one in client.of(Resolve)] == ["channel1", "channel2", "channel3", "channel4", "channel2"]
    assert len(transport._peers) == 3


@pytest.mark.parametrize("error", [errors.ChannelInvalidError, errors.ChannelPrivateError, errors.PeerIdInvalidError])
async def test_a_remembered_channel_that_is_refused_is_resolved_again(error: Callable[[Any], Exception]) -> None:
    client = ScriptedClient(send=[None, error])
    await send(client, message(1), message(1, attempt=2))
    peers = [one.peer.channel_id for one in client.of(SendMessage)]
    assert len(client.of(Resolve)) == 2
    assert peers[0] == peers[1] != peers[2]


async def test_a_channel_that_was_just_resolved_is_not_resolved_again() -> None:
    client = ScriptedClient(send=[errors.ChannelPrivateError])
    error = await failing(client)
    assert (type(error), len(client.of(Resolve))) == (PeerBlocked, 1)


async def test_a_name_without_a_channel_is_permanent() -> None:
    class Empty(ScriptedClient):
        async def __call__(self, request: Any) -> Any:
            answer = await super().__call__(request)
            return types.contacts.ResolvedPeer(answer.peer, [], []) if isinstance(request, Resolve) else answer

    error = await failing(Empty())
    assert (type(error), error.reason) == (Permanent, "USERNAME_NOT_RESOLVED")


@pytest.mark.parametrize(
    ("step", "raised", "kind"),
    [
        ("resolve", errors.UsernameNotOccupiedError, PeerBlocked),
        ("resolve", lambda _: errors.FloodWaitError(None, capture=300), FloodWait),
        ("send", errors.ChatWriteForbiddenError, PeerBlocked),
        ("send", errors.MediaEmptyError, Permanent),
        ("send", errors.RpcCallFailError, Retryable),
        ("send", ConnectionError("reset"), Retryable),
        ("send", errors.SessionRevokedError, TransportBroken),
        ("state", errors.AuthKeyUnregisteredError, TransportBroken),
        ("connect", errors.ApiIdInvalidError, TransportBroken),
        ("connect", OSError("unreachable"), Retryable),
        ("send", ValueError("Request was unsuccessful 2 time(s)"), Retryable),
    ],
)
async def test_an_error_at_any_step_is_mapped(step: str, raised: Any, kind: type[TransportError]) -> None:
    error = await failing(ScriptedClient(**{step: [raised]}))
    assert type(error) is kind


async def test_the_seconds_of_a_flood_wait_arrive() -> None:
    error = await failing(ScriptedClient(send=[lambda _: errors.SlowModeWaitError(None, capture=45)]))
    assert (getattr(error, "seconds", None), error.reason) == (45, "SLOW_MODE_WAIT")
    spam = await failing(ScriptedClient(send=[errors.PeerFloodError]), spam_wait=7200)
    assert (getattr(spam, "seconds", None), spam.reason) == (7200, "PEER_FLOOD")


async def test_a_lost_connection_is_made_again_by_the_next_send() -> None:
    client = ScriptedClient(send=[ConnectionError("reset")])
    async with Sender(TelegramTransport(client=client)) as sender:
        with pytest.raises(Retryable):
            await sender.send(message())
        await asyncio.gather(*(sender.send(message(n)) for n in range(1, 6)))
    assert client.connects == 2
    assert len(client.of(SendMessage)) == 6


async def test_test_mode_asks_nothing_of_telegram() -> None:
    client = ScriptedClient()
    await send(client, message(mode="TEST"))
    assert [type(one) for one in client.requests] == [functions.updates.GetStateRequest]


def telegram(session: str) -> Any:
    environment = {"TELEGRAM_API_ID": "17", "TELEGRAM_API_HASH": "abc", "TELEGRAM_SESSION": session}
    return transport_of("telegram:", environment=environment)


async def test_the_real_client_leaves_waiting_to_the_campaign(telegram_session: str) -> None:
    client = telegram(telegram_session)._client
    assert isinstance(client, TelegramClient)
    assert (client.api_id, client.flood_sleep_threshold) == (17, 0)
    assert client.session.save() == telegram_session
    channel = types.Channel(5, "a", types.ChatPhotoEmpty(), None, access_hash=6, username="a")
    client.session.process_entities(types.contacts.ResolvedPeer(types.PeerChannel(5), [channel], []))
    assert client.session._entities == set()


@pytest.mark.slow
async def test_the_real_client_without_a_server_is_retryable(telegram_session: str) -> None:
    with pytest.raises(Retryable) as caught:
        async with Sender(telegram(telegram_session)):
            pass
    assert caught.value.reason == "CONNECTION"


def packet(number: int) -> bytes:
    """Returns a packet that holds a number instead of a message: Telegram's way to refuse a connection."""
    start = struct.pack("<iii", 16, 0, number)
    return start + struct.pack("<I", crc32(start))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        pytest.param(packet(-404), TransportBroken, "AUTH_KEY_NOT_FOUND", id="the key is not known"),
        pytest.param(struct.pack("<iii", -429, -429, -429), FloodWait, "TRANSPORT_FLOOD", id="too many connections"),
        pytest.param(b"", Retryable, "CONNECTION", id="closed"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", Retryable, None, id="another protocol"),
    ],
)
async def test_the_real_client_at_a_server_that_refuses_it(
    answer: bytes, kind: type[TransportError], reason: str | None
) -> None:
    from telethon.crypto import AuthKey
    from telethon.sessions import StringSession

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        session = StringSession()
        session.set_dc(2, "127.0.0.1", server.sockets[0].getsockname()[1])
        session.auth_key = AuthKey(bytes(range(256)))
        with pytest.raises(TransportError) as caught:
            async with Sender(telegram(session.save())):
                pass
    assert (type(caught.value), reason or caught.value.reason) == (kind, caught.value.reason)
