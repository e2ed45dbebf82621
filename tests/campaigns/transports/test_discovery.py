"""Transports are found by their address, and those of other packages by entry point."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaigns.transports.messages import message
from jobwire.campaigns.transports import FloodWait, Sender, transport_names, transport_of
from jobwire.campaigns.transports.outbox import OutboxTransport
from jobwire.campaigns.transports.telegram import TelegramTransport
from jobwire.campaigns.transports.webhook import WebhookTransport
from jobwire.errors import InvalidOption, JobwireError, MissingExtra

SECRET = "a secret of the tests"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package, as pip would: a module and a dist-info folder with its entry points."""
    monkeypatch.syspath_prepend(tmp_path)

    def installed(module: str, source: str, *points: str, package: str = "") -> None:
        name = package or module
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = ["[jobwire.campaigns.transports]", *points]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return installed


PIGEONS = """
from jobwire.campaigns.transports import FloodWait, Receipt


class Pigeon:
    def __init__(self, address: str, *, token: str, flock: int = 1, speed: float = 1.5, homing: bool = False, note=""):
        self.given = (address, token, flock, speed, homing, note)

    async def send(self, message):
        if message.channel_id == "far":
            raise FloodWait(12, "the pigeon rests")
        return Receipt(f"pigeon to {message.channel_username}")


class Plain:
    async def send(self, message):
        return Receipt("plain")


class Silent:
    def send(self, message):
        return None
"""


async def test_a_transport_of_another_package_sends(install: Install) -> None:
    install("pigeons", PIGEONS, "pigeon = pigeons:Pigeon")
    transport = transport_of("pigeon:loft%201?flock=3&homing=yes&speed=2", environment={"PIGEON_TOKEN": "t0ken"})
    assert transport.given == ("loft 1", "t0ken", 3, 2.0, True, "")  # type: ignore[attr-defined]
    async with Sender(transport) as sender:
        assert (await sender.send(message())).id == "pigeon to @channel1"
        with pytest.raises(FloodWait, match="the pigeon rests"):
            await sender.send(message(channel_id="far"))
    assert "pigeon" in transport_names()


async def test_a_transport_with_one_method_and_no_constructor(install: Install) -> None:
    install("pigeons", PIGEONS, "plain = pigeons:Plain")
    assert (await Sender(transport_of("plain")).send(message())).id == "plain"
    with pytest.raises(InvalidOption, match="plain takes no address"):
        transport_of("plain:x")
    with pytest.raises(InvalidOption, match=r"speed: is not an option of transport plain; known are none"):
        transport_of("plain:?speed=1")


def test_options_of_the_environment_are_converted_too(install: Install) -> None:
    install("pigeons", PIGEONS, "mail-pigeon = pigeons:Pigeon")
    environment = {
        "MAIL_PIGEON_TOKEN": "t",
        "MAIL_PIGEON_FLOCK": "7",
        "MAIL_PIGEON_NOTE": "n",
        "MAIL_PIGEON_HOMING": "",
    }
    transport: Any = transport_of("mail-pigeon:x?flock=8", environment=environment)
    assert transport.given == ("x", "t", 8, 1.5, False, "n")


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("pigeon:x?flok=3", "flok: is not an option of transport pigeon; did you mean flock?"),
        ("pigeon:x?flock=many", "flock: must be a whole number (got 'many')"),
        ("pigeon:x?homing=perhaps", "homing: must be true or false"),
        ("pigeon:x?flock=1&flock=2", "flock: must be given once"),
        ("pigeon:", "address: is needed by transport pigeon: write pigeon:ADDRESS"),
        ("pigeon:x", "token: is needed by transport pigeon: set the environment variable PIGEON_TOKEN"),
        ("pigeon:x?token=s3cret", "token: must not stand in an address; set the environment variable PIGEON_TOKEN"),
        ("pigeon:x?api_token=s3cret", "api_token: is not an option"),
    ],
)
def test_a_bad_option_is_refused(install: Install, address: str, complaint: str) -> None:
    install("pigeons", PIGEONS, "pigeon = pigeons:Pigeon")
    with pytest.raises(InvalidOption) as refused:
        transport_of(address, environment={})
    assert str(refused.value).startswith(complaint)
    assert "s3cret" not in str(refused.value)


def test_a_secret_in_the_environment_that_is_malformed_is_not_shown() -> None:
    with pytest.raises(InvalidOption) as refused:
        transport_of("webhook:https://example.com", environment={"WEBHOOK_SECRET": "s3cret"})
    assert "at least 16 characters" in str(refused.value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("webhok:https://example.com", "is not known; did you mean webhook?"),
        ("carrier", "is not known; known are outbox, telegram, webhook"),
        ("", "must not be empty"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(name: str, complaint: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        transport_of(name)
    assert complaint in str(refused.value)


def test_a_near_miss_of_an_installed_name_gets_a_suggestion(install: Install) -> None:
    install("pigeons", PIGEONS, "pigeon = pigeons:Pigeon")
    with pytest.raises(InvalidOption, match="did you mean pigeon"):
        transport_of("pigon:x")


def test_two_packages_with_one_name_are_both_named(install: Install) -> None:
    install("pigeons", PIGEONS, "pigeon = pigeons:Pigeon")
    install("doves", PIGEONS, "pigeon = doves:Pigeon")
    with pytest.raises(InvalidOption, match=r"doves \(doves:Pigeon\), pigeons \(pigeons:Pigeon\)"):
        transport_of("pigeon:x")


def test_another_package_cannot_take_a_built_in_name(install: Install) -> None:
    install("pigeons", PIGEONS, "outbox = pigeons:Plain")
    assert isinstance(transport_of("outbox:x.jsonl"), OutboxTransport)


@pytest.mark.parametrize(
    ("source", "point", "complaint"),
    [
        ("raise RuntimeError('broken')", "pigeon = pigeons:Pigeon", "can't be imported: RuntimeError: broken"),
        ("", "pigeon = pigeons:Pigeon", "can't be imported: AttributeError"),
        ("import no_such_module_here", "pigeon = pigeons:Pigeon", "can't be imported: ModuleNotFoundError"),
        (PIGEONS, "pigeon = pigeons:Silent", "must be a class with a method `async def send"),
        (PIGEONS, "pigeon = pigeons:FloodWait", "must be a class with a method"),
    ],
)
def test_a_broken_package_is_named(install: Install, source: str, point: str, complaint: str) -> None:
    install("pigeons", source, point)
    with pytest.raises(JobwireError) as refused:
        transport_of("pigeon:x")
    assert complaint in str(refused.value)
    assert "of pigeons)" in str(refused.value)


def test_the_default_is_an_outbox() -> None:
    transport = transport_of()
    assert isinstance(transport, OutboxTransport)
    assert str(transport.path) == "outbox.jsonl"


def test_the_outbox_takes_its_options() -> None:
    transport: Any = transport_of("outbox:~/o%3Fut.jsonl?lock_timeout=3", environment={"OUTBOX_FSYNC": "true"})
    assert transport.path == Path.home() / "o?ut.jsonl"
    assert (transport._fsync, transport._lock_timeout) == (True, 3)
    with pytest.raises(InvalidOption, match="did you mean fsync"):
        transport_of("outbox:x?fsnc=1")


def test_the_query_of_a_webhook_stays_except_for_our_options() -> None:
    environment = {"WEBHOOK_SECRET": SECRET}
    transport: Any = transport_of("webhook:https://h.example/p?team=7&timeout=4&k=a%20b", environment=environment)
    assert isinstance(transport, WebhookTransport)
    assert (transport._url, transport._timeout) == ("https://h.example/p?team=7&k=a%20b", 4.0)
    with pytest.raises(InvalidOption, match="did you mean connect_timeout"):
        transport_of("webhook:https://h.example/p?connect_timout=4", environment=environment)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/x",
        "https://u:pw@example.com/",
        "ftp://example.com",
        "example.com",
        "https://",
        "https://a b/",
    ],
)
def test_a_webhook_refuses_unsafe_addresses(url: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        transport_of(f"webhook:{url}", environment={"WEBHOOK_SECRET": SECRET})
    assert refused.value.field == "address"
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1", "127.9.9.9:80", "[::1]:8080"])
def test_a_webhook_on_this_machine_may_be_plain_http(host: str) -> None:
    transport = transport_of(f"webhook:http://{host}/x", environment={"WEBHOOK_SECRET": SECRET})
    assert repr(transport) == f"<WebhookTransport {host}>"


def test_nothing_secret_is_in_a_repr_or_in_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    environment = {
        "WEBHOOK_SECRET": SECRET,
        "TELEGRAM_API_ID": "17",
        "TELEGRAM_API_HASH": "abcdef",
        "TELEGRAM_SESSION": "zz",
    }
    transport = transport_of("webhook:https://h.example/T0KEN?key=T1KEN", environment=environment)
    with pytest.raises(InvalidOption, match="must be the text of a Telethon StringSession") as refused:
        transport_of("telegram:", environment=environment)
    shown = repr(transport) + str(refused.value) + caplog.text
    assert [one for one in (SECRET, "T0KEN", "T1KEN", "abcdef", "zz") if one in shown] == []


@pytest.mark.parametrize("missing", ["api_id", "api_hash", "session"])
def test_telegram_names_the_setting_that_is_missing(missing: str) -> None:
    environment = {"TELEGRAM_API_ID": "17", "TELEGRAM_API_HASH": "abc", "TELEGRAM_SESSION": "x"}
    variable = f"TELEGRAM_{missing.upper()}"
    del environment[variable]
    with pytest.raises(InvalidOption, match=f"{missing}: is needed; set the environment variable {variable}"):
        transport_of("telegram:", environment=environment)


@pytest.mark.parametrize(
    ("address", "module", "package"),
    [
        ("webhook:https://example.com", "jobwire.campaigns.transports.webhook", "httpx"),
        ("telegram:", "jobwire.campaigns.transports.telegram", "telethon"),
    ],
)
def test_a_missing_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, address: str, module: str, package: str
) -> None:
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    name = address.partition(":")[0]
    with pytest.raises(MissingExtra, match=rf"pip install 'jobwire\[{name}\]'"):
        transport_of(address, environment={"WEBHOOK_SECRET": SECRET})


def test_telegram_is_built_from_its_settings(telegram_session: str) -> None:
    environment = {"TELEGRAM_API_ID": "17", "TELEGRAM_API_HASH": "abc", "TELEGRAM_SESSION": telegram_session}
    transport = transport_of("telegram:?parse_mode=html&link_preview=true", environment=environment)
    assert isinstance(transport, TelegramTransport)
    assert repr(transport) == "<TelegramTransport>"
    with pytest.raises(InvalidOption, match="parse_mode"):
        transport_of("telegram:?parse_mode=bold", environment=environment)
