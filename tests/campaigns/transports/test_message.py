"""Messages, receipts and errors."""

from __future__ import annotations

import dataclasses
import doctest
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from campaigns.transports.messages import message
from jobwire.campaigns.transports import (
    FloodWait,
    PeerBlocked,
    Permanent,
    Receipt,
    Retryable,
    TransportBroken,
    TransportError,
    discovery,
    parameters,
    sender,
    telegram,
    transport,
    webhook_signature,
)
from jobwire.errors import InvalidOption


@pytest.mark.parametrize("module", [discovery, parameters, sender, telegram, transport, webhook_signature])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("job_id", {"job_id": ""}),
        ("channel_username", {"channel_username": None}),
        ("idempotency_key", {"idempotency_key": "\ud800"}),
        ("text", {"text": ""}),
        ("text", {"text": "\udfff"}),
        ("attempt", {"attempt": 0}),
        ("attempt", {"attempt": True}),
        ("mode", {"mode": "DRY"}),
        ("media_type", {"media_type": "GIF", "media_url": "https://example.com/a.gif"}),
        ("media_url", {"media_type": "PHOTO"}),
        ("media_url", {"media_url": "https://example.com/a.jpg"}),
    ],
)
def test_a_message_with_a_bad_value_is_refused(field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption) as refused:
        message(**changes)
    assert refused.value.field == field


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        message().text = "other"  # type: ignore[misc]


def test_a_photo_may_have_an_empty_caption() -> None:
    photo = message(text="", media_type="PHOTO", media_url="https://example.com/a.jpg")
    assert photo.fields()["mediaType"] == "PHOTO"
    assert "mediaType" not in message().fields()


def test_a_receipt_takes_what_transports_have() -> None:
    at = datetime(2025, 1, 16, 12, 0)  # noqa: DTZ001 - the case
    assert Receipt(17, at) == Receipt("17", at.replace(tzinfo=UTC))  # type: ignore[arg-type]
    assert Receipt("a\x00\ud800b" + "c" * 500).id == "a?b" + "c" * 196
    assert Receipt("").id is None
    assert Receipt("1", "today").at.tzinfo is UTC  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [PeerBlocked, Permanent, Retryable, TransportBroken])
def test_an_error_has_a_text_and_a_reason_and_survives_pickling(kind: type[TransportError]) -> None:
    assert (str(kind()), kind().reason) == ((kind.__doc__ or "").strip(), kind.REASON)
    error = kind("closed\x00 to us " + "x" * 1000, reason="chat-write forbidden")
    assert len(str(error)) == 500
    assert str(error).startswith("closed to us x")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.reason) == (kind, str(error), "CHAT_WRITE_FORBIDDEN")


def test_a_flood_wait_has_its_seconds_and_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(FloodWait(30, reason="slow mode")))
    assert (error.seconds, str(error), error.reason) == (30, "the service asks to wait for 30 s", "SLOW_MODE")
    assert FloodWait(1, reason="***").reason == "FLOOD_WAIT"
