"""Every error that Telethon has counts as something, and the ones that matter as what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from telethon import errors
from telethon.errors import common, rpcbaseerrors
from telethon.tl.functions.updates import GetStateRequest

from jobwire.campaigns.transports import FloodWait, PeerBlocked, Permanent, Retryable, TransportBroken, TransportError
from jobwire.campaigns.transports.telegram_errors import RULES, Kind, kind_of, reason_of, transport_error
from jobwire.campaigns.transports.transport import reason_code

BASES = {one.__name__ for one in vars(rpcbaseerrors).values() if isinstance(one, type) and issubclass(one, Exception)}


def subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


ALL = sorted(set(subclasses(errors.RPCError)), key=lambda one: one.__name__)


def made(kind: type[Exception]) -> Exception:
    """Returns an error as Telethon makes it from an answer of Telegram."""
    request = GetStateRequest()
    if kind.__name__ in BASES:
        return kind(request, "SOMETHING_NEW", 400)
    try:
        return kind(request, capture=17)  # type: ignore[call-arg]
    except TypeError:
        return kind(request)


def test_every_error_of_telethon_is_mapped() -> None:
    assert len(ALL) > 500
    for kind in ALL:
        found = transport_error(made(kind), 600)
        assert isinstance(found, (FloodWait, PeerBlocked, Permanent, Retryable, TransportBroken)), kind
        assert reason_code(found.reason) == found.reason, kind
        assert str(found).startswith("Telegram: "), kind


def test_an_error_without_a_rule_of_its_own_follows_its_base_class() -> None:
    for kind in ALL:
        if kind.__name__ not in RULES:
            base = next(one for one in kind.__mro__[1:] if one.__name__ in RULES)
            assert base.__name__ in BASES
            assert kind_of(kind) is RULES[base.__name__], kind


def test_every_rule_is_for_an_error_that_telethon_has() -> None:
    known = {one.__name__ for one in ALL} | {"RPCError"} | set(vars(common))
    assert sorted(set(RULES) - known) == []


def test_every_base_class_has_a_rule() -> None:
    assert sorted(BASES - set(RULES)) == []


def test_every_error_about_waiting_is_a_wait_and_carries_its_time() -> None:
    """Telethon gives `seconds` to errors with a time in them."""
    timed = (Kind.WAIT, Kind.CHANNEL_WAIT)
    waits = [one for one in ALL if issubclass(one, errors.FloodError) and kind_of(one) in timed]
    assert {"FloodWaitError", "FloodPremiumWaitError", "SlowModeWaitError"} <= {one.__name__ for one in waits}
    for kind in waits:
        found = transport_error(made(kind), 600)
        assert isinstance(found, FloodWait)
        assert found.seconds == (60 if kind.__name__ in BASES else 17), kind
        assert found.channel_only is (kind is errors.SlowModeWaitError)


def test_no_error_about_the_session_or_the_account_is_blamed_on_a_channel() -> None:
    for kind in ALL:
        if issubclass(kind, errors.UnauthorizedError) or kind.__name__.startswith(("AuthKey", "ApiId", "Session")):
            wanted = Kind.PERMANENT if kind.__name__ in ("AuthKeyError", "SessionTooFreshError") else Kind.BROKEN
            assert kind_of(kind) is wanted, kind


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("FloodWaitError", FloodWait, "FLOOD_WAIT"),
        ("SlowModeWaitError", FloodWait, "SLOW_MODE_WAIT"),
        ("FloodPremiumWaitError", FloodWait, "FLOOD_PREMIUM_WAIT"),
        ("PeerFloodError", FloodWait, "PEER_FLOOD"),
        ("ChatWriteForbiddenError", PeerBlocked, "CHAT_WRITE_FORBIDDEN"),
        ("ChannelPrivateError", PeerBlocked, "CHANNEL_PRIVATE"),
        ("ChatAdminRequiredError", PeerBlocked, "CHAT_ADMIN_REQUIRED"),
        ("UsernameNotOccupiedError", PeerBlocked, "USERNAME_NOT_OCCUPIED"),
        ("UsernameInvalidError", PeerBlocked, "USERNAME_INVALID"),
        ("UserIsBlockedError", PeerBlocked, "USER_IS_BLOCKED"),
        ("UserBannedInChannelError", Permanent, "USER_BANNED_IN_CHANNEL"),
        ("ChannelInvalidError", Permanent, "CHANNEL_INVALID"),
        ("PeerIdInvalidError", Permanent, "PEER_ID_INVALID"),
        ("ChatSendPhotosForbiddenError", Permanent, "CHAT_SEND_PHOTOS_FORBIDDEN"),
        ("MediaEmptyError", Permanent, "MEDIA_EMPTY"),
        ("WebpageMediaEmptyError", Permanent, "WEBPAGE_MEDIA_EMPTY"),
        ("PhotoInvalidDimensionsError", Permanent, "PHOTO_INVALID_DIMENSIONS"),
        ("MediaCaptionTooLongError", Permanent, "MEDIA_CAPTION_TOO_LONG"),
        ("MessageTooLongError", Permanent, "MESSAGE_TOO_LONG"),
        ("WebpageCurlFailedError", Retryable, "WEBPAGE_CURL_FAILED"),
        ("RpcCallFailError", Retryable, "RPC_CALL_FAIL"),
        ("WorkerBusyTooLongRetryError", Retryable, "WORKER_BUSY_TOO_LONG_RETRY"),
        ("TimedOutError", Retryable, "SOMETHING_NEW"),
        ("TimeoutError", Retryable, "TIMEOUT"),
        ("UserMigrateError", Retryable, "USER_MIGRATE"),
        ("ApiIdInvalidError", TransportBroken, "API_ID_INVALID"),
        ("AuthKeyUnregisteredError", TransportBroken, "AUTH_KEY_UNREGISTERED"),
        ("AuthKeyDuplicatedError", TransportBroken, "AUTH_KEY_DUPLICATED"),
        ("SessionRevokedError", TransportBroken, "SESSION_REVOKED"),
        ("SessionPasswordNeededError", TransportBroken, "SESSION_PASSWORD_NEEDED"),
        ("UserDeactivatedBanError", TransportBroken, "USER_DEACTIVATED_BAN"),
        ("FrozenMethodInvalidError", TransportBroken, "FROZEN_METHOD_INVALID"),
        ("UnauthorizedError", TransportBroken, "SOMETHING_NEW"),
        ("ForbiddenError", Permanent, "SOMETHING_NEW"),
        ("BadRequestError", Permanent, "SOMETHING_NEW"),
        ("ServerError", Retryable, "SOMETHING_NEW"),
    ],
)
def test_the_errors_that_matter(name: str, kind: type[TransportError], reason: str) -> None:
    found: Any = transport_error(made(getattr(errors, name)), 600)
    assert (type(found), found.reason) == (kind, reason)


def test_the_spam_limit_waits_for_the_configured_time() -> None:
    found = transport_error(made(errors.PeerFloodError), 4711)
    assert isinstance(found, FloodWait)
    assert found.seconds == 4711


def test_an_error_of_a_later_api_is_named_by_its_message() -> None:
    assert reason_of(errors.BadRequestError(None, "ALLOW_PAYMENT_REQUIRED_5", 400)) == "ALLOW_PAYMENT_REQUIRED_5"
    assert reason_of(errors.BadRequestError(None, "***", 400)) == "BAD_REQUEST"
    odd = errors.RPCError(None, "ODD", 999)
    assert isinstance(transport_error(odd, 600), Retryable)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.AuthKeyNotFound(), TransportBroken),
        (errors.InvalidBufferError((-404).to_bytes(4, "little", signed=True)), Retryable),
        (errors.InvalidBufferError((-429).to_bytes(4, "little", signed=True)), FloodWait),
        (errors.SecurityError("checksum"), Retryable),
        (errors.ReadCancelledError(), Retryable),
        (ConnectionError("Cannot send requests while disconnected"), Retryable),
        (OSError("unreachable"), Retryable),
        (TimeoutError(), Retryable),
    ],
)
def test_errors_of_the_connection(error: Exception, kind: type[TransportError]) -> None:
    assert type(transport_error(error, 600)) is kind


def test_errors_of_others_are_left_to_the_sender() -> None:
    assert transport_error(KeyError("x"), 600) is None
