"""Sends each message as a signed HTTP POST with a JSON body.

How an answer counts:

==============================  ====================  ==============================================================
answer                          counts as             why
==============================  ====================  ==============================================================
2xx                             a receipt             Its id is the text or number `id` of a JSON body, if there is one.
429; 503 with `Retry-After`     `FloodWait`           429 without a time to wait: 60 s.
410                             `PeerBlocked`         Gone: the receiver has no such channel any more.
401, 407, 3xx                   `TransportBroken`     The secret or the address is wrong, for all messages.
408, 409, 425                   `Retryable`           The receiver is not ready, or works on the same key.
403 and every other 4xx         `Permanent`           A firewall answers 403 too, and must not deactivate channels.
5xx                             `Retryable`
no answer or half of one        `Retryable`           The receiver recognises the next attempt by its `Idempotency-Key`.
==============================  ====================  ==============================================================

Redirects are not followed: the body is signed for one receiver. Of the response at most 64 KiB are read.
"""

from __future__ import annotations

import contextvars
import ipaddress
import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import orjson

from jobwire import checks
from jobwire._version import __version__
from jobwire.campaigns.transports.parameters import HIDDEN
from jobwire.campaigns.transports.transport import (
    FloodWait,
    Message,
    PeerBlocked,
    Permanent,
    Receipt,
    Retryable,
    TransportBroken,
    TransportError,
)
from jobwire.campaigns.transports.webhook_signature import SIGNATURE_HEADER, TIMESTAMP_HEADER, signature
from jobwire.deadline import deadline
from jobwire.errors import InvalidOption, MissingExtra

try:
    import httpx
except ModuleNotFoundError as missing:
    raise MissingExtra("webhook:", "webhook") from missing

LONGEST_RESPONSE = 64 * 1024
SHORTEST_SECRET = 16
UNKNOWN_WAIT = 60.0
_BROKEN = {401, 407}
_NOT_READY = {408, 409, 425}
_quiet: contextvars.ContextVar[bool] = contextvars.ContextVar("jobwire_webhook_quiet", default=False)


class WebhookTransport:
    """Posts messages to the URL `address`, signed with `secret`."""

    address_has_query: ClassVar[bool] = True

    def __init__(self, address: str, *, secret: str, timeout: float = 30.0, connect_timeout: float = 5.0) -> None:
        self._url = _checked_url(address)
        if len(secret) < SHORTEST_SECRET:
            raise InvalidOption("secret", HIDDEN, f"must have at least {SHORTEST_SECRET} characters")
        self._secret = secret
        self._timeout = checks.seconds("timeout", timeout, minimum=0.001)
        self._connect_timeout = checks.seconds("connect_timeout", connect_timeout, minimum=0.001)
        self._client: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        """Names the host only: the path or the query of a webhook often holds its secret."""
        return f"<WebhookTransport {self._host}>"

    async def __aenter__(self) -> Self:
        self._connected()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def send(self, message: Message) -> Receipt:
        """Posts one message and returns the receiver's receipt."""
        body = orjson.dumps(message.fields())
        now = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": _header_text(message.idempotency_key),
            TIMESTAMP_HEADER: str(now),
            SIGNATURE_HEADER: signature(self._secret, now, body),
        }
        try:
            with _no_request_log():
                async with (
                    deadline(self._timeout),
                    self._connected().stream("POST", self._url, content=body, headers=headers) as response,
                ):
                    content = await _content(response)
        except TimeoutError:
            raise Retryable(f"{self._host} did not answer within {self._timeout:g} s", reason="TIMEOUT") from None
        except httpx.TimeoutException as error:
            raise Retryable(f"{self._host} did not answer in time ({_name(error)})", reason="TIMEOUT") from None
        except httpx.RemoteProtocolError as error:
            raise Retryable(f"{self._host} sent a broken response: {error}", reason="BROKEN_RESPONSE") from None
        except httpx.TransportError as error:
            raise Retryable(f"no connection to {self._host}: {_name(error)}: {error}", reason="CONNECTION") from None
        if response.is_success:
            return Receipt(_id_in(content))
        raise _refusal(self._host, response, content)

    @property
    def _host(self) -> str:
        return urlsplit(self._url).netloc

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                follow_redirects=False,
                timeout=httpx.Timeout(self._timeout, connect=self._connect_timeout),
                # A compressed answer could be small to receive and large to hold.
                headers={"User-Agent": f"jobwire/{__version__}", "Accept-Encoding": "identity"},
            )
        return self._client


async def _content(response: httpx.Response) -> bytes:
    """Returns the start of the body, as it was received. What follows is not read."""
    content = b""
    async for part in response.aiter_raw():
        content += part
        if len(content) > LONGEST_RESPONSE:
            return content[:LONGEST_RESPONSE]
    return content


def _refusal(host: str, response: httpx.Response, content: bytes) -> TransportError:
    """Returns the error for an answer that is not 2xx."""
    status = response.status_code
    excerpt = " ".join(content[:200].decode(errors="replace").split())
    text = f"{host} answered {status} {response.reason_phrase}".rstrip() + (f": {excerpt}" if excerpt else "")
    reason = f"HTTP_{status}"
    if status in (429, 503):
        wait = _retry_after(response.headers.get("Retry-After"))
        if wait is not None or status == 429:
            return FloodWait(UNKNOWN_WAIT if wait is None else wait, text, reason=reason)
    if status == 410:
        return PeerBlocked(text, reason=reason)
    if status in _BROKEN:
        return TransportBroken(text, reason=reason)
    if response.has_redirect_location or 300 <= status < 400:
        return TransportBroken(f"{host} answered {status}: redirects are not followed", reason=reason)
    if status in _NOT_READY or status >= 500:
        return Retryable(text, reason=reason)
    return Permanent(text, reason=reason)


def _retry_after(value: str | None) -> float | None:
    """Returns the seconds in a header `Retry-After`, which is a number or a date."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value.strip()[:12])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _id_in(content: bytes) -> str | None:
    try:
        found: Any = orjson.loads(content)
    except ValueError:
        return None
    value = found.get("id") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] JSON
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _, _ = parts.hostname or "", parts.port, httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        raise InvalidOption("address", HIDDEN, "must be a URL: webhook:https://host/path") from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise InvalidOption("address", HIDDEN, "must be a URL: webhook:https://host/path")
    if parts.username is not None or parts.password is not None:
        raise InvalidOption("address", HIDDEN, "must have no user and password; receivers check the signature")
    if parts.scheme == "http" and not _is_loopback(host):
        raise InvalidOption("address", f"http://{host}", "must begin with https:// unless the host is this machine")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _header_text(key: str) -> str:
    """Returns a key that a header can hold: other characters than printable ASCII are percent-encoded."""
    return "".join(one if "!" <= one <= "~" and one != "%" else _encoded(one) for one in key)


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _name(error: Exception) -> str:
    """Returns the kind of an error."""
    return type(error).__name__


class _Quiet(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not _quiet.get()


@contextmanager
def _no_request_log() -> Generator[None]:
    """Keeps httpx from logging the URLs of webhooks, which may hold secrets. Its other requests are logged as usual."""
    logger = logging.getLogger("httpx")
    if not any(isinstance(one, _Quiet) for one in logger.filters):
        logger.addFilter(_Quiet())
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)
