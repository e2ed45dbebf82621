"""Sends messages to Telegram channels through Telethon, as the account of a session.

The client comes from three settings: `TELEGRAM_API_ID`, `TELEGRAM_API_HASH` and `TELEGRAM_SESSION`, the text of a
Telethon `StringSession`.

Every message carries a number of the sender's choice, and Telegram refuses a second message with the same number. The
number is made from the idempotency key, so that a message whose answer was lost is not sent twice. Requests are
therefore written out here: the client's `send_message` chooses a random number itself.

Telegram loads media from their URL: photos of up to 5 MB, videos and documents of up to 20 MB. It decides by the type
of the file whether it shows a video or a document.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
from collections import OrderedDict
from types import TracebackType
from typing import Any, Protocol, Self

from jobwire import checks
from jobwire.campaigns.transports.parameters import HIDDEN
from jobwire.campaigns.transports.telegram_errors import transport_error
from jobwire.campaigns.transports.transport import Message, Permanent, Receipt, TransportError
from jobwire.errors import InvalidOption, MissingExtra

SPAM_WAIT = 86400.0
REMEMBERED = 10_000
_PARSERS = {"html": "telethon.extensions.html", "markdown": "telethon.extensions.markdown"}
_STALE = ("CHANNEL_INVALID", "CHANNEL_PRIVATE", "PEER_ID_INVALID")


class Client(Protocol):
    """The methods of Telethon's `TelegramClient` that are used here."""

    async def connect(self) -> None: ...
    def is_connected(self) -> bool: ...
    async def __call__(self, request: Any) -> Any: ...
    async def disconnect(self) -> None: ...


class TelegramTransport:
    """Sends messages as the account of `session`, or through the `client` that is given.

    `parse_mode` is `html` or `markdown`; without it, text is sent as it is. `spam_wait` is the time in seconds for
    which a campaign pauses when Telegram limits the account for spam: that error comes without a time.
    """

    def __init__(
        self,
        *,
        api_id: int = 0,
        api_hash: str = "",
        session: str = "",
        parse_mode: str = "",
        link_preview: bool = False,
        spam_wait: float = SPAM_WAIT,
        client: Client | None = None,
    ) -> None:
        self._telethon: Any = _imported("telethon")
        if parse_mode and parse_mode not in _PARSERS:
            raise InvalidOption("parse_mode", parse_mode, "must be html or markdown, or left out")
        self._parser: Any = _imported(_PARSERS[parse_mode]) if parse_mode else None
        self._link_preview = checks.yes_or_no("link_preview", link_preview)
        self._spam_wait = checks.seconds("spam_wait", spam_wait, minimum=1)
        self._client: Client = client or self._new_client(api_id, api_hash, session)
        self._connecting = asyncio.Lock()
        self._peers: OrderedDict[str, Any] = OrderedDict()

    def __repr__(self) -> str:
        return "<TelegramTransport>"

    async def __aenter__(self) -> Self:
        """Connects and checks that the session is logged in. Raises TransportBroken if it is not."""
        try:
            await self._ask(self._telethon.functions.updates.GetStateRequest())
        except BaseException:
            await self._client.disconnect()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.disconnect()

    async def send(self, message: Message) -> Receipt:
        """Sends one message, with its media if it has one."""
        username = _username(message.channel_username)
        remembered = username in self._peers
        try:
            return await self._send(message, await self._peer(username))
        except TransportError as error:
            if error.reason not in _STALE:
                raise
            self._peers.pop(username, None)
            if not remembered:
                raise
        # The username may belong to another channel by now.
        return await self._send(message, await self._peer(username))

    async def _send(self, message: Message, peer: Any) -> Receipt:
        request = self._request(message, peer)
        try:
            answer = await self._ask(request)
        except TransportError as error:
            if error.reason == "RANDOM_ID_DUPLICATE":
                return Receipt(None)  # an earlier attempt has reached Telegram
            raise
        return Receipt(_message_id(answer, request.random_id))

    def _request(self, message: Message, peer: Any) -> Any:
        messages, types = self._telethon.functions.messages, self._telethon.types
        text, entities = (message.text, None) if self._parser is None else self._parser.parse(message.text)
        common: dict[str, Any] = {"message": text, "entities": entities, "random_id": _random_id(message)}
        if message.media_type is None:
            return messages.SendMessageRequest(peer, no_webpage=not self._link_preview, **common)
        photo = message.media_type == "PHOTO"
        media = (types.InputMediaPhotoExternal if photo else types.InputMediaDocumentExternal)(message.media_url)
        return messages.SendMediaRequest(peer, media, **common)

    async def _peer(self, username: str) -> Any:
        """Returns Telegram's reference to a channel. Asking for one is strictly limited, so it is remembered."""
        if username in self._peers:
            self._peers.move_to_end(username)
            return self._peers[username]
        found = await self._ask(self._telethon.functions.contacts.ResolveUsernameRequest(username))
        entities = [*found.chats, *found.users]
        if not entities:
            raise Permanent(f"Telegram has nothing under the name {username}", reason="USERNAME_NOT_RESOLVED")
        try:
            peer = self._telethon.utils.get_input_peer(entities[0])
        except TypeError as error:
            raise Permanent(f"{username} can't be written to: {error}", reason="USERNAME_NOT_RESOLVED") from error
        self._peers[username] = peer
        while len(self._peers) > REMEMBERED:
            self._peers.popitem(last=False)
        return peer

    async def _ask(self, request: Any) -> Any:
        """Sends a request, with a new connection if there is none."""
        try:
            if not self._client.is_connected():
                await self._connect()
            return await self._client(request)
        except Exception as error:
            found = transport_error(error, self._spam_wait)
            if found is None:
                raise
            raise found from error

    async def _connect(self) -> None:
        async with self._connecting:
            if self._client.is_connected():
                return
            try:
                await self._client.connect()
            finally:
                # Telethon keeps the error that ends a connection here. The request that fails has it too, so it is
                # marked as seen: asyncio would log it a second time.
                lost: asyncio.Future[Any] | None = getattr(self._client, "disconnected", None)
                if lost is not None:
                    lost.add_done_callback(_seen)

    def _new_client(self, api_id: int, api_hash: str, session: str) -> Client:
        for field, value in (("api_id", api_id), ("api_hash", api_hash), ("session", session)):
            if not value:
                raise InvalidOption(field, None, f"is needed; set the environment variable TELEGRAM_{field.upper()}")
        checks.whole("api_id", api_id, minimum=1)
        try:
            stored = _session_class()(session.strip())
        except Exception:
            raise InvalidOption("session", HIDDEN, "must be the text of a Telethon StringSession") from None
        client: Client = self._telethon.TelegramClient(
            stored,
            api_id,
            api_hash,
            flood_sleep_threshold=0,  # the campaign pauses, not the client
            request_retries=1,
            connection_retries=2,
            auto_reconnect=False,  # it would try again without a pause; the next message connects
            raise_last_call_error=True,
            receive_updates=False,
        )
        return client


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        raise MissingExtra("telegram:", "telegram") from missing


def _seen(lost: asyncio.Future[Any]) -> None:
    if not lost.cancelled():
        lost.exception()


def _session_class() -> Any:
    """Returns a StringSession that does not remember each channel that it has seen, without limit."""
    sessions: Any = _imported("telethon.sessions")

    class BoundedSession(sessions.StringSession):
        def process_entities(self, tlo: Any) -> None:
            """Forgets them: the transport remembers the channels that it needs."""

    return BoundedSession


def _username(text: str) -> str:
    """Returns a username without @ and without the address of t.me, in lower case, as Telegram compares them.

    >>> _username("https://t.me/News"), _username("@News")
    ('news', 'news')
    """
    plain = text.strip().lower()
    for prefix in ("https://", "http://", "t.me/", "telegram.me/", "@"):
        plain = plain.removeprefix(prefix)
    return plain.rstrip("/")


def _random_id(message: Message) -> int:
    """Returns the message's number: the same for each attempt, and different from that of any other message."""
    key = hashlib.sha256(message.idempotency_key.encode()).digest()
    return int.from_bytes(key[:8], "big", signed=True) or 1


def _message_id(answer: Any, random_id: int) -> str | None:
    """Returns the id that Telegram gave to the message, or None if the answer does not have it."""
    for update in getattr(answer, "updates", None) or ():
        if getattr(update, "random_id", None) == random_id:
            return str(update.id)
    sent = getattr(answer, "id", None)
    return None if sent is None else str(sent)
