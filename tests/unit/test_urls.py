"""URLs: every protocol and transport, options taken out, mistakes explained, passwords kept out of sight."""

from __future__ import annotations

import doctest
import pickle
import re
import string
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from redis.connection import parse_url

from jobwire import Queue, Worker, connect, urls
from jobwire.errors import InvalidOption
from jobwire.redact import redact
from jobwire.urls import Address, default_url, parse

passwords = st.text(min_size=1, max_size=30)
unlikely = st.text(string.printable, max_size=12).map(lambda text: f"{text}Zq7{text}")
names = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=10)
HOLDERS = [
    "bullmq+redis://app:{}@cache.example:6379/2?prefix=mail",
    "bullmq+rediss://:{}@cache.example/0",
    "bridgemq+cluster://app:{}@h1:7000,h2:7001/?tls=true",
    "bullmq+sentinel://app:{}@h1,h2/main/3",
    "monque+mongodb://app:{}@h1,h2:27018/db?replicaSet=rs0",
    "monque+mongodb+srv://app:{}@cluster.example/db",
    "pgboss+postgresql://app:{}@db.example:5432/app?sslmode=require&schema=jobs",
    "pgboss+postgresql://db.example/app?user=app&password={}&schema=jobs",
    "pgboss+postgresql://app@db.example/app?sslpassword={}",
    "bullmq+redis://cache.example/0?password={}",
    "monque+mongodb://h1/db?tlsCertificateKeyFilePassword={}&tls=true",
    "bullmq+sentinel://h1,h2/main/0?sentinel_password={}",
]
MISTAKEN = [
    "redis://:{}@cache.example:6379/0",
    "bulmq+redis://app:{}@cache.example:6379/0",
    "bullmq://app:{}@cache.example",
    "bullmq+redis://app:{}@cache.example:port/0",
    "bullmq+redis://app:{}@cache.example/0?schema=x",
    "bullmq+embedded://app:{}@cache.example/0",
    "bullmq+redis:app:{}@cache.example",
    "app:{}@cache.example:6379",
    "pgboss+postgresql://h/app?password={}&prefix=x",
]


def rule_of(url: str) -> str:
    with pytest.raises(InvalidOption) as caught:
        parse(url)
    assert caught.value.field == "url"
    return caught.value.rule


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(urls).failed == 0
    assert doctest.testmod(urls).attempted > 0


@pytest.mark.parametrize(
    ("url", "driver_url", "options"),
    [
        ("bullmq+redis://", "redis://", {}),
        ("bullmq+redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0", {}),
        ("BullMQ+Redis://h/1?prefix=a&socket_timeout=5", "redis://h/1?socket_timeout=5", {"prefix": "a"}),
        ("bridgemq+rediss://:p%40w@[::1]:6380", "rediss://:p%40w@[::1]:6380", {}),
        ("bridgemq+redis://h?namespace=x%3Ay", "redis://h", {"namespace": "x:y"}),
        ("monque+mongodb://a,b:1/db?collection=c&w=1&j=true", "mongodb://a,b:1/db?w=1&j=true", {"collection": "c"}),
        ("monque+mongodb+srv://u:p@c.example/db?tls=true", "mongodb+srv://u:p@c.example/db?tls=true", {}),
        ("pgboss+postgresql:///app?host=/run/pg&schema=j", "postgresql:///app?host=/run/pg", {"schema": "j"}),
        ("pgboss+postgresql://h/app?schema=%22My%20jobs%22", "postgresql://h/app", {"schema": '"My jobs"'}),
    ],
)
def test_the_driver_gets_its_own_url_without_our_options(url: str, driver_url: str, options: dict[str, str]) -> None:
    address = parse(url)
    assert (address.driver_url, address.options) == (driver_url, options)
    assert (address.hosts, address.folder, address.name) == ((), None, "")


@pytest.mark.parametrize(
    ("url", "hosts", "service", "driver_url"),
    [
        ("bullmq+cluster://h1:7000,h2", (("h1", 7000), ("h2", 6379)), "", "redis://h1:7000/0"),
        ("bullmq+cluster://u:p@h1,[::1]:7/?tls=true", (("h1", 6379), ("::1", 7)), "", "rediss://u:p@h1:6379/0"),
        ("bullmq+sentinel://h1,h2:5/main", (("h1", 26379), ("h2", 5)), "main", "redis://h1:26379/0"),
        ("bullmq+sentinel://:p@[::1]/m%20n/3?tls=false", (("::1", 26379),), "m n", "redis://:p@[::1]:26379/3"),
        ("bullmq+sentinel://h/m/1?protocol=3", (("h", 26379),), "m", "redis://h:26379/1?protocol=3"),
    ],
)
def test_clusters_and_sentinels_list_their_hosts(
    url: str, hosts: tuple[tuple[str, int], ...], service: str, driver_url: str
) -> None:
    address = parse(url)
    assert (address.hosts, address.service, address.driver_url) == (hosts, service, driver_url)
    assert address.options == {}


def test_a_hash_tag_is_a_prefix_like_any_other() -> None:
    assert parse("bullmq+cluster://h1:7000,h2:7001/?prefix={bull}").options == {"prefix": "{bull}"}


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("bullmq+embedded:", ".jobwire"),
        ("bullmq+embedded:./here", "here"),
        ("pgboss+embedded:here/there?schema=x", "here/there"),
        ("monque+embedded:///srv/my%20jobs", "/srv/my jobs"),
        ("bridgemq+embedded:/srv/jobs@home", "/srv/jobs@home"),
    ],
)
def test_an_embedded_server_has_a_folder_and_no_driver_url(url: str, folder: str) -> None:
    address = parse(url)
    assert (address.transport, address.folder, address.driver_url) == ("embedded", Path(folder), "")


def test_a_memory_store_may_have_a_name() -> None:
    assert (parse("memory:").name, parse("memory:orders").name) == ("", "orders")
    assert parse("memory:orders").transport == ""


def test_without_a_url_the_environment_decides_and_then_an_embedded_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBWIRE_URL", "memory:x")
    assert default_url() == "memory:x"
    monkeypatch.delenv("JOBWIRE_URL")
    assert parse(default_url()).folder == Path(".jobwire")


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_an_empty_variable_is_refused_and_starts_no_local_server(monkeypatch: pytest.MonkeyPatch, blank: str) -> None:
    monkeypatch.setenv("JOBWIRE_URL", blank)
    for make in (lambda: Queue("emails"), lambda: Worker("emails", print), connect):
        with pytest.raises(InvalidOption, match="JOBWIRE_URL: is set but empty"):
            make()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://h", "say which protocol: bullmq+redis or bridgemq+redis"),
        ("mongodb+srv://h", "say which protocol: monque+mongodb+srv"),
        ("postgres://h", "say which protocol: pgboss+postgresql"),
        ("bullmq://h", "bullmq+redis, bullmq+rediss, bullmq+cluster, bullmq+sentinel, bullmq+embedded"),
        ("pgboss+redis://h", "pgboss has the transports pgboss+postgresql, pgboss+embedded"),
        ("pgboss+postgres://h", "pgboss+postgresql"),
        ("bulmq+redis://h", "did you mean bullmq+redis?"),
        ("kafka://h", "known are bullmq, bridgemq, monque, pgboss, memory"),
        ("memory+redis://h", "memory"),
        ("memory://x", "write memory: or memory:name"),
        ("memory:x?prefix=a", "memory takes like"),
        ("memory:?like=memory", "like must be the name of a protocol"),
        ("memory:?like=rabbit", "like must be the name of a protocol"),
        ("", "must start with a protocol"),
        ("localhost", "must start with a protocol"),
        ("bullmq+redis:h", "must go on with //"),
        ("bullmq+redis://h h", "no spaces"),
        ("bullmq+redis://h/0#x", "%23"),
        ("bullmq+redis://h:70000", "host:port"),
        ("bullmq+redis://h:0", "host:port"),
        ("bullmq+redis://h1,h2", "bullmq+cluster or bullmq+sentinel"),
        ("bullmq+redis://h/one", "number of a database"),
        ("bullmq+redis://:a/b@h", "percent-encode"),
        ("bullmq+redis://:1/b@h", "percent-encode the user name"),
        ("bullmq+redis://:1?x=b@h", "percent-encode the user name"),
        ("bullmq+redis://:a@b@h", "percent-encode the user name"),
        ("bullmq+cluster://", "must list the hosts"),
        ("bullmq+cluster://h1,,h2", "must list the hosts"),
        ("bullmq+cluster://h/1", "database 0 only"),
        ("bullmq+cluster://h?tls=yes", "tls must be true or false"),
        ("bullmq+sentinel://h", "must name the service"),
        ("bullmq+sentinel://h/main/x", "number of a database"),
        ("bullmq+embedded://here", "takes a folder"),
        ("bullmq+embedded:?socket_timeout=1", "bullmq takes prefix"),
        ("bullmq+embedded:%00", "null"),
        ("bullmq+embedded:%ff", "UTF-8"),
        ("bullmq+redis://h?schema=x", "bullmq takes prefix"),
        ("bullmq+redis://h?prefx=x", "unknown option prefx; did you mean prefix?"),
        ("bullmq+redis://h?Prefix=x", "did you mean prefix?"),
        ("bullmq+redis://h?tls=true", "bullmq takes prefix"),
        ("bullmq+redis://h?sentinel_password=x", "unknown option"),
        ("bullmq+sentinel://h/m?sentinel_tls=yes", "tls must be true or false"),
        ("bullmq+sentinel://h/m?sentinel_pasword=x", "unknown option"),
        ("bridgemq+cluster://h?prefix=x", "bridgemq takes namespace, tls"),
        ("bullmq+redis://h?prefix=", "prefix must be 1 to 200"),
        ("bullmq+redis://h?prefix=a&prefix=b", "twice"),
        ("monque+mongodb://h/db?collection=system.x", "collection must be"),
        ("monque+mongodb://h/db?collection=a$b", "collection must be"),
        ("pgboss+postgresql://h/db?schema=1x", "schema must be"),
        ("pgboss+postgresql://h/db?schema=a-b", "schema must be"),
        ("pgboss+postgresql://h/db?schema=" + "x" * 51, "schema must be"),
    ],
)
def test_a_mistake_is_refused_with_what_to_write_instead(url: str, words: str) -> None:
    assert words in rule_of(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("bullmq+redis://h?foo=1", "unknown option foo; bullmq takes prefix and what its driver takes"),
        ("bullmq+redis://h?socket_timout=1", "did you mean socket_timeout?"),
        ("bullmq+redis://h?socket_timeout=soon", "socket_timeout"),
        ("bullmq+cluster://h?max_conections=1", "did you mean max_connections?"),
        ("bullmq+sentinel://h/main?client_nam=x", "did you mean client_name?"),
        ("pgboss+postgresql://h?foo=1", "unknown option foo"),
        ("pgboss+postgresql://h?sslmod=require", "did you mean sslmode?"),
        ("monque+mongodb://h/db?foo=1", "unknown option foo"),
        ("monque+mongodb://h/db?j=true", "did you mean journal?"),
        ("monque+mongodb://h/db?serverSelectionTimeout=5", "did you mean serverselectiontimeoutms?"),
    ],
)
def test_an_option_that_its_driver_does_not_know_is_refused(url: str, words: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(words)) as refused:
        connect(url)
    assert refused.value.field == "url"


@pytest.mark.parametrize(
    "url",
    [
        "bullmq+redis://h?db=2&socket_timeout=3&client_name=me&health_check_interval=4&max_connections=5",
        "bullmq+rediss://h?ssl_cert_reqs=none&ssl_ca_certs=/etc/ca.pem&ssl_check_hostname=false",
        "bullmq+cluster://h?prefix={a}&socket_timeout=3&username=me",
        "pgboss+postgresql:///app?host=/run/pg&sslmode=require&application_name=me&options=-c%20x%3Dy&ssl=true",
        "monque+mongodb://h/db?retryWrites=true&w=majority&appName=me&authSource=admin&readPreference=nearest",
    ],
)
def test_the_options_of_a_driver_are_taken(url: str) -> None:
    assert connect(url).address.redacted == url


@pytest.mark.parametrize(
    "url",
    [
        "pgboss+postgresql://app:hunter2@h/db?foo=1&password=hunter2",
        "pgboss+postgresql://h/db?pasword=hunter2",
        "bullmq+sentinel://h/m?sentinel_pasword=hunter2",
    ],
)
def test_a_password_stays_hidden_when_an_option_is_refused(url: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        connect(url)
    assert "hunter2" not in str(refused.value)


def test_something_that_is_no_text_is_refused_by_its_type() -> None:
    with pytest.raises(InvalidOption, match=r"must be a string such as .* \(got 'bytes'\)"):
        parse(b"bullmq+redis://:hunter2@h")  # type: ignore[arg-type]


@given(st.text(max_size=60) | st.text("bulmq+redis:/@?#[]%,&=.0", max_size=40).map(lambda tail: f"bullmq+redis{tail}"))
def test_any_text_is_an_address_or_an_invalid_option(url: str) -> None:
    try:
        assert isinstance(parse(url), Address)
    except InvalidOption as refused:
        assert refused.field == "url"  # noqa: PT017 either outcome is right


@given(passwords)
def test_what_is_shown_of_an_address_does_not_depend_on_its_password(password: str) -> None:
    for holder in HOLDERS:
        shown = parse(holder.format("other"))
        address = parse(holder.format(quote(password, safe="")))
        assert (str(address), repr(address)) == (str(shown), repr(shown))
        assert "***" in str(address)
        assert "other" not in str(shown)


@given(passwords)
def test_what_is_shown_of_a_mistake_does_not_depend_on_the_password(password: str) -> None:
    for holder in MISTAKEN:
        with pytest.raises(InvalidOption) as expected:
            parse(holder.format("other"))
        with pytest.raises(InvalidOption) as caught:
            parse(holder.format(quote(password, safe="")))
        assert str(caught.value) == str(expected.value)
        assert caught.value.value == expected.value.value
        assert "other" not in str(expected.value)
        assert caught.value.__context__ is None


@given(unlikely)
@example("//Zq7//")
def test_a_password_that_should_have_been_encoded_is_hidden_too(password: str) -> None:
    for holder in (*HOLDERS[:7], *MISTAKEN[:8]):
        try:
            shown = repr(parse(holder.format(password)))
        except InvalidOption as refused:
            shown = str(refused) + str(refused.value)
        assert "Zq7" not in shown


@given(passwords.map(lambda password: quote(password, safe="")), names)
def test_passwords_are_taken_out_of_any_text_around_a_url(password: str, words: str) -> None:
    for holder in HOLDERS:
        text = f"{words} ('{holder}'), {words}; password = {{}} {words}"
        shown = redact(text.format(password, password))
        assert shown == redact(text.format("other", "other"))
        assert "other" not in shown
        assert shown.endswith(f"password = *** {words}")
        assert redact(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing to hide: a@b.example, 10:30", "nothing to hide: a@b.example, 10:30"),
        ("at redis://h:6379/0 now", "at redis://h:6379/0 now"),
        ("host=h password='a b' dbname=x", "host=h password=*** dbname=x"),
        ("redis://:a@h and mongodb://u:b@h/db", "redis://:***@h and mongodb://u:***@h/db"),
        ("redis://:a@h,redis://:b@h", "redis://:***@h"),
        ("postgresql://u:a@h/db?sslpassword=b&x=1", "postgresql://u:***@h/db?sslpassword=***&x=1"),
        ("redis://:a?password=b&c@h", "redis://:***@h"),
        ("redis://h/0?password=a@b&x=1", "redis://h/0?password=***&x=1"),
        ("redis://h/0?pass%77ord=a", "redis://h/0?pass%77ord=***"),
    ],
)
def test_only_passwords_are_taken_out(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_a_long_text_is_searched_in_linear_time() -> None:
    for text in ("a" * 300_000, "password" * 30_000, "%" * 300_000, "a://" * 50_000):
        assert redact(text) == text


@given(st.tuples(names, passwords), st.tuples(names, st.integers(1, 65_535)), st.integers(0, 15), names)
def test_every_part_reaches_the_redis_driver(
    login: tuple[str, str], server: tuple[str, int], database: int, prefix: str
) -> None:
    (user, password), (host, port) = login, server
    url = f"bullmq+redis://{user}:{quote(password, safe='')}@{host}:{port}/{database}?prefix={prefix}&client_name=me"
    address = parse(url)
    assert address.options == {"prefix": prefix}
    assert parse_url(address.driver_url) == {
        "username": user,
        "password": password,
        "host": host,
        "port": port,
        "db": database,
        "client_name": "me",
    }


def test_an_address_can_be_a_key_and_travel_to_another_process() -> None:
    address = parse("bullmq+sentinel://:p@h/main?prefix=x")
    assert pickle.loads(pickle.dumps(address)) == address
    assert {address: 1}[parse("bullmq+sentinel://:p@h/main?prefix=x")] == 1
    assert address != parse("bullmq+sentinel://:q@h/main?prefix=x")
