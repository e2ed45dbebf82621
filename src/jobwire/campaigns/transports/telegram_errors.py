"""The table of Telegram's errors: what each means for a campaign.

Telethon has a class for each error of Telegram's API, some 540 of them, below nine base classes that stand for codes
like those of HTTP. An error counts as the first of its classes that `RULES` has, beginning with its own. The base
classes are in there too, so that every error counts as something, also one that Telegram adds later.

The reason in reports is the name that Telegram gives to the error, such as CHAT_WRITE_FORBIDDEN.

`PEER_BLOCKED` deactivates a channel at once. It is used only where the error is certainly about that one channel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from jobwire.campaigns.transports.transport import (
    FloodWait,
    PeerBlocked,
    Permanent,
    Retryable,
    TransportBroken,
    TransportError,
    reason_code,
)

UNKNOWN_WAIT = 60.0
"""Seconds to wait after a flood error without a time."""


class Kind(Enum):
    """The ways in which an error counts."""

    WAIT = "wait for the time in the error"
    CHANNEL_WAIT = "the message waits for the time in the error"
    SPAM_LIMIT = "wait for the configured time"
    BLOCKED = "the channel is deactivated"
    PERMANENT = "the message fails"
    RETRYABLE = "the message gets its next attempt"
    BROKEN = "the campaign fails"


def _all(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys((f"{name}Error" for name in names.split()), kind)


_BASES: dict[str, Kind] = {
    "InvalidDCError": Kind.RETRYABLE,  # 303: another data centre; Telethon moves there
    "BadRequestError": Kind.PERMANENT,  # 400
    "UnauthorizedError": Kind.BROKEN,  # 401: the session
    "ForbiddenError": Kind.PERMANENT,  # 403: not always about the channel
    "NotFoundError": Kind.PERMANENT,  # 404: a method that the server does not have
    "AuthKeyError": Kind.PERMANENT,  # 406: as 400, in spite of its name
    "FloodError": Kind.WAIT,  # 420
    "ServerError": Kind.RETRYABLE,  # 500
    "TimedOutError": Kind.RETRYABLE,  # 503
    "RPCError": Kind.RETRYABLE,  # a code that is none of these
}

# About the session, the account or the application: no message can be sent.
_BROKEN = _all(
    Kind.BROKEN,
    "ApiIdInvalid ApiIdPublishedFlood ConnectionApiIdInvalid ConnectionLayerInvalid AuthKeyDuplicated"
    " AccessTokenExpired AccessTokenInvalid PhoneNumberBanned UpdateAppToLogin FrozenMethodInvalid"
    " FrozenParticipantMissing TempAuthKeyEmpty AuthBytesInvalid InputLayerInvalid BotMethodInvalid",
)

# About this one channel: it does not exist, is closed to us, or is not a place where we may write.
_BLOCKED = _all(
    Kind.BLOCKED,
    "ChatWriteForbidden ChatForbidden ChatGuestSendForbidden BroadcastForbidden ChannelPrivate ChannelBanned"
    " ChatAdminRequired ChatRestricted UsernameNotOccupied UsernameInvalid UsernamePurchaseAvailable UserKicked"
    " UserNotParticipant UserIsBlocked UserBlocked YouBlockedUser UserPrivacyRestricted UserDeleted"
    " InputUserDeactivated UserIsBot UserNotMutualContact ChannelPublicGroupNa ParticipantJoinMissing",
)

# About the channel perhaps, or about our account or a stale reference to the channel: the channel is not deactivated
# at once. USER_BANNED_IN_CHANNEL is the answer for every channel when Telegram has limited the account.
_DOUBTFUL = _all(
    Kind.PERMANENT,
    "UserBannedInChannel UserRestricted ChannelInvalid ChannelIdInvalid PeerIdInvalid PeerIdNotSupported ChatIdInvalid"
    " ChatInvalid ChatIdEmpty UserIdInvalid UserInvalid SendAsPeerInvalid TopicDeleted PremiumAccountRequired"
    " RightForbidden NotAllowed ChatSendPlainForbidden ChatSendMediaForbidden ChatSendPhotosForbidden"
    " ChatSendVideosForbidden ChatSendGifsForbidden",
)

# About the message: its text or its media. The same message would be refused again.
_MESSAGE = _all(
    Kind.PERMANENT,
    "MessageEmpty MessageTooLong MediaCaptionTooLong EntitiesTooLong EntityBoundsInvalid EntityMentionUserInvalid"
    " MediaEmpty MediaInvalid MediaNewInvalid MediaTtlInvalid ExternalUrlInvalid UrlInvalid WebpageMediaEmpty"
    " WebdocumentInvalid WebdocumentMimeInvalid WebdocumentSizeTooBig WebdocumentUrlInvalid WcConvertUrlInvalid"
    " PhotoInvalid PhotoInvalidDimensions PhotoExtInvalid PhotoContentTypeInvalid PhotoContentUrlEmpty"
    " PhotoSaveFileInvalid ImageProcessFailed VideoFileInvalid VideoContentTypeInvalid DocumentInvalid"
    " FileContentTypeInvalid FileReferenceExpired GifContentTypeInvalid",
)

# Passing conditions that have the code of a bad request. WEBPAGE_CURL_FAILED: Telegram could not load the media's URL
# now; the server behind it may be busy.
_PASSING = _all(
    Kind.RETRYABLE,
    "WebpageCurlFailed MsgWaitFailed InputFetchError InputFetchFail ConnectionNotInited BotResponseTimeout UnknownError"
    " PremiumCurrentlyUnavailable",
)

_WAITS = {
    "PeerFloodError": Kind.SPAM_LIMIT,
    "FloodWaitError": Kind.WAIT,
    "FloodPremiumWaitError": Kind.WAIT,
    "SlowModeWaitError": Kind.CHANNEL_WAIT,  # of one chat
}

# Errors of Telethon itself, not answers of Telegram.
_OWN = {
    "AuthKeyNotFound": Kind.BROKEN,
    "ReadCancelledError": Kind.RETRYABLE,
    "TypeNotFoundError": Kind.RETRYABLE,
    "InvalidChecksumError": Kind.RETRYABLE,
    "InvalidBufferError": Kind.RETRYABLE,
    "SecurityError": Kind.RETRYABLE,
    "BadMessageError": Kind.RETRYABLE,
    "MultiError": Kind.RETRYABLE,
}

RULES: Mapping[str, Kind] = {
    **_BASES, **_BROKEN, **_BLOCKED, **_DOUBTFUL, **_MESSAGE, **_PASSING, **_WAITS, **_OWN,
}  # fmt: skip


def kind_of(error: type[BaseException]) -> Kind | None:
    """Returns how a class of errors counts, or None if it is not one of Telethon's."""
    for one in error.__mro__:
        if one.__module__.startswith("telethon.") and one.__name__ in RULES:
            return RULES[one.__name__]
    return None


def transport_error(error: Exception, spam_wait: float) -> TransportError | None:
    """Returns the error to raise for one of Telethon's, or None if it is another one."""
    kind = kind_of(type(error))
    if kind is None:
        if isinstance(error, (OSError, TimeoutError, EOFError)):
            return Retryable(f"no connection to Telegram: {type(error).__name__}: {error}", reason="CONNECTION")
        return None
    reason, text = reason_of(error), f"Telegram: {error}"
    if isinstance(error, BufferError) and getattr(error, "code", None) == 429:  # too many connections
        return FloodWait(UNKNOWN_WAIT, text, reason="TRANSPORT_FLOOD")
    match kind:
        case Kind.WAIT | Kind.CHANNEL_WAIT:
            seconds = getattr(error, "seconds", UNKNOWN_WAIT)
            return FloodWait(seconds, text, reason=reason, channel_only=kind is Kind.CHANNEL_WAIT)
        case Kind.SPAM_LIMIT:
            return FloodWait(spam_wait, text, reason=reason)
        case Kind.BLOCKED:
            return PeerBlocked(text, reason=reason)
        case Kind.PERMANENT:
            return Permanent(text, reason=reason)
        case Kind.RETRYABLE:
            return Retryable(text, reason=reason)
        case Kind.BROKEN:
            return TransportBroken(text, reason=reason)


def reason_of(error: Exception) -> str:
    """Returns Telegram's name of an error: that of its class, or the message of an error without a class."""
    name = type(error).__name__
    message = getattr(error, "message", None)
    if name in _BASES and isinstance(message, str) and reason_code(message):
        return reason_code(message)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removesuffix("Error")).upper()
