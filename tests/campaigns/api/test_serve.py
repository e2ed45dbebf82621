"""`jobwire campaign serve`: a process of its own, and who may use it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from campaigns.api.clients import LOWEST, SECRETS
from jobwire.campaigns.api import Role
from jobwire.campaigns.api.serve import VARIABLE
from jobwire.cli import main
from jobwire.errors import InvalidOption
from jobwire.serving.listening import listen

TOKENS = f"ann:admin:{SECRETS[Role.ADMIN]} ci:viewer:{SECRETS[Role.VIEWER]}"
CSV = {"Content-Type": "text/csv"}
PAGE = Path(__file__).parents[3] / "docs" / "campaigns-api.md"


@contextlib.contextmanager
def served(*arguments, tokens=""):
    """Runs the command until the end of the block, and yields its URL and a list with what it wrote on stderr."""
    environment = {**os.environ, "JOBWIRE_CAMPAIGN_TOKENS": tokens}
    command = [sys.executable, "-m", "jobwire", "campaign", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    wrote = []
    try:
        for line in process.stderr:
            wrote.append(line)
            if found := re.search(r"served at (\S+),", line):
                yield found.group(1), wrote
                break
        process.send_signal(signal.SIGTERM)
        wrote += process.stderr.read().splitlines()  # not communicate(): it would miss lines that are read already
        assert process.wait(60) == 0, wrote
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def options(jobwire_postgres, schemas):
    names = ["--schema", schemas["schema"], "--queue-schema", schemas["queue_schema"]]
    return ["--url", jobwire_postgres.url, *names]


def bearer(role):
    return {"Authorization": f"Bearer {SECRETS[role]}"}


def test_beyond_loopback_it_needs_tokens_and_answers_only_with_them(options):
    with (
        served(*options, "--host", "0.0.0.0", tokens=TOKENS) as (url, wrote),
        httpx.Client(base_url=url.replace("0.0.0.0", "127.0.0.1")) as client,
    ):
        assert client.get("/campaigns").status_code == 401
        assert client.get("/campaigns", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/campaigns", headers=bearer(Role.VIEWER)).status_code == 200
        template = {"name": "served", "content": "x"}
        assert client.post("/templates", json=template, headers=bearer(Role.VIEWER)).status_code == 403
        assert client.post("/templates", json=template, headers=bearer(Role.ADMIN)).status_code == 201
        foreign = {"Host": "campaigns.example.com", "Origin": "https://evil.example.com"}
        assert client.get("/campaigns", headers=bearer(Role.VIEWER) | foreign).status_code == 200
    text = "\n".join(wrote)
    assert "ann (admin) asks for POST '/templates'" in text
    assert not any(secret in text for secret in SECRETS.values())


def test_on_loopback_it_needs_none_and_answers_only_this_machine(options, unique):
    name = unique.replace("test_", "c")
    with served(*options) as (url, wrote), httpx.Client(base_url=url) as client:
        assert client.get("/campaigns").status_code == 200
        for headers in (
            {"Host": "evil.example.com"}, {"Host": "evil.example.com:8000"}, {"Host": "127.0.0.1.evil.example.com"},
            {"Origin": "https://evil.example.com"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
        ):  # fmt: skip
            assert client.get("/campaigns", headers=headers).status_code == 403, headers
        port = url.rpartition(":")[2]
        for headers in ({"Host": f"localhost:{port}"}, {"Origin": url}, {"Host": "[::1]:1"}):
            assert client.get("/campaigns", headers=headers).status_code == 200, headers
        _upload_half(int(port), f"username\n{name}_a\n".encode())
        imported = client.post("/channels/import", content=f"username\n{name}_b\n", headers=CSV, params={"batch": name})
        assert imported.json()["added"] == 1
        usernames = [one["username"] for one in client.get("/channels", params={"limit": 1000}).json()["items"]]
        assert f"@{name}_b" in usernames
        assert f"@{name}_a" not in usernames
    assert "every program of this machine can run campaigns" in "\n".join(wrote)


def _upload_half(port, body):
    """Sends a part of a file that was announced as longer, and goes away. Returns when the server has noticed."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = "POST /channels/import HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
        connection.sendall(f"{head}Content-Length: {len(body) * 2}\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + 30
        connection.settimeout(30)
        while connection.recv(4096):
            assert time.monotonic() < deadline


def test_the_page_in_the_documentation_shows_what_runs(
    *, options, capsys, monkeypatch, jobwire_postgres, unique, tmp_path
):
    walk, mounted = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for name in ('"hello"', '"batch": "news"', "batch=news"):  # other tests of this file have them already
        assert name in walk
        walk = walk.replace(name, name.replace("hello", unique).replace("news", unique))
    [tokens] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path / "tokens.toml"
    file.write_text(re.sub(r'(?<=token = ")wNq.*(?=")', SECRETS[Role.ADMIN], tokens))
    with served(*options, "--tokens", str(file)) as (url, _):
        exec(walk.replace("http://127.0.0.1:8000", url), {"TOKEN": SECRETS[Role.ADMIN]})
    printed = capsys.readouterr().out.splitlines()
    texts = ["Hello @news, meet Tea!", "Hello @other_news, meet Tea!"]
    assert [printed[0], printed[1], *sorted(printed[2:-2]), *printed[-2:]] == ["2", "QUEUED", *texts, "RUNNING", "0"]
    monkeypatch.setenv("DATABASE_URL", jobwire_postgres.url)
    monkeypatch.setenv("ANNS_TOKEN", SECRETS[Role.ADMIN])
    found = {}
    exec(mounted, found)
    assert [route.path for route in found["web"].routes][-1] == "/broadcasts"


def test_the_documentation_has_every_request_with_its_role():
    named = {}
    for line in re.findall(r"^\| (`(?:GET|POST|PUT) .*)$", PAGE.read_text(), re.MULTILINE):
        requests, role, _ = line.split(" | ", 2)
        first = None
        for request in re.findall(r"`([^`]+)`", requests):
            method, _, path = request.partition("?")[0].rpartition(" ")
            if method:
                first = (method, path)
            else:  # only the end of a path, which begins as the one before
                method, path = first[0], first[1].rpartition("/")[0] + path
            named[method, path] = role
    assert named == LOWEST


def test_beyond_loopback_without_tokens_it_refuses_to_start(options):
    command = [sys.executable, "-m", "jobwire", "campaign", "serve", *options, "--host", "0.0.0.0", "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "JOBWIRE_CAMPAIGN_TOKENS"}
    ended = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "host: is not a loopback address, which needs tokens" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("url", "tokens", "complaint"),
    [
        ("", None, "url: is missing: give --url, or set JOBWIRE_CAMPAIGN_URL"),
        ("pgboss+postgresql://localhost/app", None, "url: must be a plain PostgreSQL URL"),
        ("postgresql://localhost/app", "missing.toml", "missing.toml: no such file or directory"),
        ("postgresql://localhost/app", "", "has no tokens"),
        (
            "postgresql://localhost/app",
            "[ann]\nrole = 'boss'\ntoken = 'x'",
            "ann.role: must be viewer, operator or admin",
        ),
    ],
    ids=range(5),
)
def test_options_that_break_a_rule_are_refused_with_a_sentence(
    *, monkeypatch, capsys, tmp_path, url, tokens, complaint
):
    monkeypatch.delenv("JOBWIRE_CAMPAIGN_TOKENS", raising=False)
    monkeypatch.setenv("JOBWIRE_CAMPAIGN_URL", url)
    monkeypatch.chdir(tmp_path)
    Path("tokens.toml").write_text(tokens or "")
    file = "tokens.toml" if tokens is not None and not tokens.endswith(".toml") else tokens
    given = [] if file is None else ["--tokens", file]
    assert main(["campaign", "serve", "--port", "0", *given]) == 1
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "0", "10.255.255.1"])
def test_an_address_beyond_loopback_is_refused_without_tokens(host):
    with pytest.raises(InvalidOption, match="is not a loopback address"):
        listen(host, 0, open_to_all=True, variable=VARIABLE)


@pytest.mark.parametrize("host", ["no such host", "x" * 300])
def test_an_address_that_does_not_exist_is_refused(host):
    with pytest.raises(InvalidOption, match="must be an address or a name of this machine"):
        listen(host, 0, open_to_all=True, variable=VARIABLE)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_loopback_needs_no_tokens_and_a_taken_port_is_named(host):
    with listen(host, 0, open_to_all=True, variable=VARIABLE) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(OSError, match=f"can't listen on {host} port {port}: Address already in use"):
            listen(host, port, open_to_all=True, variable=VARIABLE)
