"""A transport hands one message to one channel.

`send` either returns a `Receipt` or raises one of the errors below. Each error states what the campaign does next:

========================  ===============================================================================
`FloodWait(seconds)`      The campaign pauses for that long. The message costs no attempt. With `channel_only=True`
                          only this message waits.
`PeerBlocked`             The message fails, and its channel is deactivated at once.
`Permanent`               The message fails without a further attempt.
`Retryable`               The message gets its next attempt after the backoff, if it has one left.
`TransportBroken`         No message can be sent at all: the campaign fails.
any other exception       Counts as `Retryable` and is logged with its traceback.
========================  ===============================================================================

A campaign calls every transport through `jobwire.campaigns.transports.Sender`, which keeps these promises for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol, runtime_checkable

from jobwire import checks
from jobwire.errors import InvalidOption, JobwireError

MEDIA_TYPES = ("PHOTO", "VIDEO", "DOCUMENT")
MODES = ("TEST", "LIVE")

LONGEST_TEXT = 500
"""Characters of an error's text that are kept: it is stored with every failed message."""
_LONGEST_ID = 200
_REASON = re.compile("[A-Z][A-Z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Message:
    """One message to one channel, with its text already rendered.

    `idempotency_key` is the same for every attempt at this message: a transport that has sent the key before returns
    the first receipt and sends nothing. `attempt` counts from 1. `media_type` is PHOTO, VIDEO or DOCUMENT, `mode` is
    TEST or LIVE.
    """

    job_id: str
    campaign_id: str
    channel_id: str
    channel_username: str
    text: str
    idempotency_key: str
    media_type: str | None = None
    media_url: str | None = None
    attempt: int = 1
    mode: str = "LIVE"

    def __post_init__(self) -> None:
        for name in ("job_id", "campaign_id", "channel_id", "channel_username", "idempotency_key"):
            checks.text(name, getattr(self, name))
        checks.maybe_empty("text", self.text)
        checks.whole("attempt", self.attempt, minimum=1)
        if self.mode not in MODES:
            raise InvalidOption("mode", self.mode, "must be TEST or LIVE")
        if self.media_type is not None and self.media_type not in MEDIA_TYPES:
            raise InvalidOption("media_type", self.media_type, "must be PHOTO, VIDEO or DOCUMENT, or None")
        if (self.media_type is None) != (self.media_url is None):
            raise InvalidOption("media_url", self.media_url, "must be given exactly if media_type is given")
        if self.media_url is not None:
            checks.text("media_url", self.media_url)
        if not self.text and self.media_type is None:
            raise InvalidOption("text", self.text, "must not be empty in a message without media")

    def fields(self) -> dict[str, Any]:
        """Returns the message as a JSON object, with the names of the queue's payload. Media that is not there is
        left out."""
        found: dict[str, Any] = {
            "idempotencyKey": self.idempotency_key,
            "jobId": self.job_id,
            "campaignId": self.campaign_id,
            "channelId": self.channel_id,
            "channelUsername": self.channel_username,
            "text": self.text,
            "attempt": self.attempt,
            "mode": str(self.mode),
        }
        if self.media_type is not None:
            found |= {"mediaType": str(self.media_type), "mediaUrl": self.media_url}
        return found


@dataclass(frozen=True, slots=True)
class Receipt:
    """Confirms that a message was sent. `id` is the transport's own id of it, if it has one.

    Values are adapted rather than refused, since the message is sent already: an id that is a number becomes text, a
    time without a zone is taken as UTC.

    Examples:
        >>> Receipt(4711).id
        '4711'
    """

    id: str | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        if self.id is not None:
            readable = str(self.id).encode(errors="replace").decode()[:_LONGEST_ID]
            object.__setattr__(self, "id", readable.replace("\x00", "") or None)
        if not isinstance(self.at, datetime):  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
            object.__setattr__(self, "at", datetime.now(UTC))
        elif self.at.tzinfo is None:
            object.__setattr__(self, "at", self.at.replace(tzinfo=UTC))


@runtime_checkable
class Transport(Protocol):
    """A class with one method is a transport.

    It may be an async context manager as well: it is then opened once per worker, before the first message, and closed
    when the worker ends. A class attribute `records_only = True` states that nothing reaches a real channel through
    it: only then is it given the messages of campaigns in TEST mode. If it has a method `send_many(messages)`, that is
    called instead, with the messages of one moment: it returns a list of receipts, or raises if none of them was sent.
    A subclass that overrides only `send` gets each message there.
    """

    async def send(self, message: Message) -> Receipt:
        """Sends one message. It is called by several tasks at once."""
        ...


class TransportError(JobwireError):
    """The transport could not send the message."""

    REASON: ClassVar[str] = "TRANSPORT_ERROR"

    def __init__(self, message: str | None = None, *, reason: str = "") -> None:
        super().__init__(readable(message) if message else None)
        self.reason = reason_code(reason) or self.REASON
        """A code in capitals, by which reports count failures."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), str(self), self.reason)


class FloodWait(TransportError):
    """The channel's service asks for a pause before the next message, to all channels or this one (`channel_only`)."""

    REASON = "FLOOD_WAIT"

    def __init__(
        self, seconds: float, message: str | None = None, *, reason: str = "", channel_only: bool = False
    ) -> None:
        super().__init__(message or f"the service asks to wait for {seconds} s", reason=reason)
        self.seconds = seconds
        self.channel_only = channel_only

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_wait, (type(self), self.seconds, str(self), self.reason, self.channel_only)


class PeerBlocked(TransportError):
    """This channel can't be written to, now or later."""

    REASON = "PEER_BLOCKED"


class Retryable(TransportError):
    """The message was not sent. A later attempt may succeed."""

    REASON = "RETRYABLE"


class Permanent(TransportError):
    """The message was refused. A later attempt would be refused too."""

    REASON = "PERMANENT"


class TransportBroken(TransportError):
    """The transport can't send any message, for example because its credentials were revoked."""

    REASON = "TRANSPORT_BROKEN"


def reason_code(text: str) -> str:
    """Returns a text as a code of capitals, digits and underscores, or an empty string if nothing is left of it.

    >>> reason_code("chat-write forbidden"), reason_code("403")
    ('CHAT_WRITE_FORBIDDEN', '')
    """
    code = re.sub("[^A-Z0-9]+", "_", text.upper()).strip("_")[:64]
    return code if _REASON.fullmatch(code) else ""


def readable(text: str) -> str:
    """Returns a text that a database can hold, shortened."""
    plain = text.encode(errors="replace").decode().replace("\x00", "")
    return plain if len(plain) <= LONGEST_TEXT else plain[: LONGEST_TEXT - 1] + "…"


def _restored(kind: type[TransportError], text: str, reason: str) -> TransportError:
    return kind(text, reason=reason)


def _restored_wait(
    kind: type[FloodWait],
    seconds: float,
    text: str,
    reason: str,
    channel_only: bool,
) -> FloodWait:
    return kind(seconds, text, reason=reason, channel_only=channel_only)
