"""Channels through the API: the upload of a file, lists, and activation."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

CSV = {"Content-Type": "text/csv; charset=utf-8"}


@pytest.fixture
def upload(api, unique):
    """Uploads lines of a file into a batch of the test's own."""

    async def post(*lines, headers=CSV, **params):
        content = "".join(f"{line}\n" for line in lines)
        return await api.post("/channels/import", params={"batch": unique} | params, content=content, headers=headers)

    return post


@pytest.fixture
def name(unique):
    return unique.replace("test_", "c")


@pytest.fixture(autouse=True)
def no_file_stays(monkeypatch, tmp_path):
    """Every temporary file of an upload is gone at the end of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert list(Path(tmp_path).iterdir()) == []


async def test_a_file_is_imported_into_a_batch(api, upload, name, unique):
    given = await upload("username,category", f"{name}_a,tea", f"https://t.me/{name}_b,", f"@{name}_A,tea")
    assert (given.status_code, given.json()) == (
        200, {"lines": 3, "added": 2, "existing": 0, "inactive": 0, "duplicates": 1, "listed": 2, "bad": 0,
              "bad_lines": []},
    )  # fmt: skip
    listed = (await api.get("/channels", params={"batch": unique})).json()
    shown = [(one["username"], one["category"], one["is_active"], one["error_count"]) for one in listed["items"]]
    assert sorted(shown) == [(f"@{name}_a", "tea", True, 0), (f"@{name}_b", None, True, 0)]
    assert unique in [one["name"] for one in (await api.get("/batches", params={"limit": 1000})).json()["items"]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a b", "username 'a b' may have only the letters a to z, digits and underscores"),
        ("abc", "username 'abc' must have 4 to 32 characters"),
        ("1abcd", "username '1abcd' must begin with a letter"),
        ("t.me/+AbCdEf123", "username 't.me/+AbCdEf123' is an invitation link; a username is needed"),
        ("good,tea", "has 2 fields; the header has 1"),
    ],
)
async def test_a_bad_line_refuses_the_file_with_its_number_and_reason(*, api, upload, name, unique, line, reason):
    given = await upload("username", f"{name}_a", line)
    body = given.json()
    assert (given.status_code, body["field"], body["rule"]) == (422, "file", "1 of 2 lines are bad")
    assert body["bad_lines"] == [{"number": 3, "reason": reason}]
    assert f"line 3: {reason}" in body["error"]
    assert (await api.get("/channels", params={"batch": unique})).status_code == 404
    skipped = (await upload("username", f"{name}_a", line, skip_bad=True)).json()
    assert (skipped["added"], skipped["bad"], skipped["bad_lines"]) == (1, 1, body["bad_lines"])


@pytest.mark.parametrize(
    ("lines", "field", "rule"),
    [
        ((), "file", "is empty; its first line must be 'username' or 'username,category'"),
        (("usrname",), "header", "is not a column; did you mean username?, separated by commas"),
    ],
)
async def test_a_file_without_its_header_is_refused(upload, lines, field, rule):
    given = await upload(*lines)
    assert (given.status_code, given.json()["field"], given.json()["rule"]) == (422, field, rule)


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", ""])
async def test_anything_but_csv_is_refused_with_the_way_to_do_it(upload, kind):
    given = await upload("username", "abcde", headers={"Content-Type": kind})
    assert given.status_code == 415
    assert "--data-binary @channels.csv" in given.json()["error"]


async def test_a_compressed_file_is_refused(upload):
    assert (await upload("username", headers={**CSV, "Content-Encoding": "gzip"})).status_code == 415


@pytest.mark.parametrize("stated", [True, False], ids=["with its length", "in chunks"])
async def test_a_file_beyond_the_limit_is_refused_and_nothing_imported(*, api, upload, name, unique, stated):
    content = f"username\n{name}_a\n".encode() + b"\n" * 2000

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 100):
            yield content[start : start + 100]

    body = content if stated else chunks()
    given = await api.post("/channels/import", params={"batch": unique}, content=body, headers=CSV)
    assert (given.status_code, given.json()) == (413, {"error": "the body is too large: at most 0.0 MB are taken"})
    assert (await api.get("/channels", params={"batch": unique})).status_code == 404


@pytest.mark.parametrize("stated", [True, False], ids=["with its length", "in chunks"])
async def test_a_json_body_beyond_the_limit_is_refused(api, stated):
    content = b'{"name": "' + b"x" * 300_000 + b'"}'

    async def chunks() -> AsyncIterator[bytes]:
        yield content[:200_000]
        yield content[200_000:]

    body = content if stated else chunks()
    given = await api.post("/templates", content=body, headers={"Content-Type": "application/json"})
    assert (given.status_code, given.json()) == (413, {"error": "the body is too large: at most 0.2 MB are taken"})


async def test_channels_are_listed_by_state_and_activated(api, upload, name, unique, database):
    await upload("username", f"{name}_a", f"{name}_b")
    tired = "UPDATE channels SET is_active = false, error_count = 5, last_error = 'no' WHERE username = %s"
    await database.execute(tired, [f"@{name}_a"])
    inactive = (await api.get("/channels", params={"batch": unique, "active": False})).json()["items"]
    assert [(one["username"], one["error_count"], one["last_error"]) for one in inactive] == [(f"@{name}_a", 5, "no")]
    given = await api.post(f"/channels/{name}_A/activate")
    assert (given.status_code, given.json()["is_active"], given.json()["error_count"]) == (200, True, 0)
    active = (await api.get("/channels", params={"batch": unique, "active": True, "limit": 1})).json()
    rest = (await api.get("/channels", params={"batch": unique, "active": True, "after": active["next"]})).json()
    assert {one["username"] for one in active["items"] + rest["items"]} == {f"@{name}_a", f"@{name}_b"}


@pytest.mark.parametrize(
    ("username", "error", "rule"),
    [
        ("@news_ONE", "another active channel has this username", "channels_active_username"),
        ("-1001234", "the channel's username is not of the form @name", "channels_username_shape"),
    ],
)
async def test_a_channel_that_a_rule_keeps_inactive_is_not_activated(*, api, database, unique, username, error, rule):
    add = "INSERT INTO channels (id, username, is_active) VALUES (%s, %s, false)"
    await database.execute(add, [unique, username])
    given = await api.post(f"/channels/{unique}/activate")
    assert (given.status_code, given.json()) == (409, {"error": error, "rule": rule})
