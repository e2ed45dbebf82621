"""The import of channels: all or nothing, in bounded memory, with every bad line found."""

from __future__ import annotations

import asyncio
import io
import tracemalloc

import pytest

from jobwire.campaigns import BadLine, ImportRefused, channel_names, import_channels
from jobwire.errors import InvalidOption


async def _usernames(connection):
    rows = await (await connection.execute("SELECT username, category FROM channels ORDER BY username")).fetchall()
    return dict(rows)


@pytest.fixture
def load(connection, unique):
    """Imports a file with this content."""

    async def run(content, **options):
        raw = content if isinstance(content, bytes) else content.encode()
        return await import_channels(connection, io.BytesIO(raw), schema=unique, **options)

    return run


async def test_every_spelling_is_imported_as_one_username(connection, load, store):
    report = await load(
        'Username,Category\n@first,tea\nsecond,\nhttps://t.me/third,"a, ""b"" \\ c"\r\n\n'
        "FIRST,other\nt.me/s/fourth/12,é\n",
        batch="news",
    )  # fmt: skip
    assert (report.lines, report.added, report.duplicates, report.listed, report.bad) == (5, 4, 1, 4, 0)
    assert await _usernames(connection) == {
        "@first": "tea", "@second": None, "@third": 'a, "b" \\ c', "@fourth": "é",
    }  # fmt: skip
    assert (await store.batches.count(connection, (await store.batches.get(connection, "news")).id)).active == 4


async def test_a_category_may_have_any_character_but_control_characters(connection, load):
    odd = {
        "@first": "caf\u00e9\u00a0bar",
        "@second": "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        "@third": "\u202bא\u202c",
    }
    await load("username,category\n" + "".join(f"{name},{category}\n" for name, category in odd.items()))
    assert await _usernames(connection) == odd


async def test_channels_that_exist_are_counted_and_not_changed(connection, load, store):
    await load("username,category\nfirst,tea\nsecond,tea\n")
    second = await store.channels.get(connection, "second")
    await store.channels.block(connection, second.id, "PEER_BLOCKED")
    report = await load("category,username\ncoffee,FIRST\ncoffee,second\ncoffee,third\n", batch="news")
    assert (report.added, report.existing, report.inactive, report.listed) == (1, 2, 1, 3)
    assert await _usernames(connection) == {"@first": "tea", "@second": "tea", "@third": "coffee"}
    again = await load("username\nfirst\nsecond\nthird\n", batch="news")
    assert (again.added, again.existing, again.inactive, again.listed) == (0, 3, 1, 0)


async def test_a_bad_line_refuses_the_whole_file_with_numbers_and_reasons(connection, load):
    content = b"\n".join([
        b"username,category", b"good,tea", b"abc,tea", b"with space,tea", b"t.me/+AbC,tea", b"1abcd,tea", b",tea",
        b"two,many,fields", b'name,"open', b"caf\xe9,tea", b"nul\0name,tea", b"name," + b"x" * 201, b"name,a\tb",
        b"x" * 20_000, b"last,tea", b"@,tea", b"https://t.me/c/123,tea", "ünicode,tea".encode(),
    ])  # fmt: skip
    with pytest.raises(ImportRefused) as refused:
        await load(content, batch="news")
    report = refused.value.report
    reasons = {line.number: line.reason for line in report.bad_lines}
    assert (report.lines, report.bad, report.added) == (17, 15, 0)
    for number, words in {
        3: "username 'abc' must have 4 to 32 characters", 4: "only the letters", 5: "invitation link",
        6: "must begin with a letter", 7: "is empty", 8: "has 3 fields; the header has 2", 9: "quote",
        10: "is not UTF-8 (byte 4)", 11: "NUL", 12: "category has 201 characters", 13: "control character",
        14: "longer than 10,000 bytes", 16: "is empty", 17: "private channel", 18: "only the letters",
    }.items():  # fmt: skip
        assert words in reasons[number]
    assert "15 of 17 lines are bad and nothing was imported: line 3: " in str(refused.value)
    assert await _usernames(connection) == {}
    assert await (await connection.execute("SELECT count(*) FROM batches")).fetchone() == (0,)


async def test_good_lines_are_imported_beside_bad_ones_if_asked(connection, load):
    report = await load("username\nabc\ngood\n\nab\n", skip_bad=True, keep_bad=1)
    assert (report.lines, report.added, report.bad) == (3, 1, 2)
    assert report.bad_lines == (BadLine(2, "username 'abc' must have 4 to 32 characters"),)
    assert await _usernames(connection) == {"@good": None}


async def test_only_the_first_bad_lines_are_kept(load):
    with pytest.raises(ImportRefused, match=r"100 of 100 lines .*; and 97 more") as refused:
        await load("username\n" + "x\n" * 100, keep_bad=3)
    assert [line.number for line in refused.value.report.bad_lines] == [2, 3, 4]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"good\nother\n", "is not a column"),
        (b"usernam\ngood\n", "did you mean username?"),
        (b"category\ntea\n", "must be 'username'"),
        (b"username,username\na,b\n", "must be 'username'"),
        (b"username;category\ngood;tea\n", "separated by commas"),
        ("username\ngood\n".encode("utf-16"), "is UTF-16; save it as UTF-8"),
        (b'"username\ngood\n', "quote"),
        (b"\xe9\n", "is not UTF-8"),
        (b"user\0name\n", "NUL"),
    ],
)
async def test_a_file_without_its_header_is_refused(connection, load, content, words):
    with pytest.raises(InvalidOption) as refused:
        await load(content)
    assert words in str(refused.value)
    assert await _usernames(connection) == {}


async def test_a_batch_is_named_as_a_campaign_is(connection, load):
    with pytest.raises(InvalidOption, match="batch: must not contain control characters"):
        await load("username\nfirst\n", batch="a\nb")
    assert await _usernames(connection) == {}


async def test_a_header_alone_and_a_byte_order_mark_are_fine(connection, load):
    assert (await load("\ufeffusername\n")).lines == 0
    assert (await load("\ufeffusername\ngood")).added == 1


async def test_two_imports_at_once_add_each_channel_once(connection, unique, open_connection):
    content = ("username\n" + "".join(f"name{number}\n" for number in range(2000))).encode()
    connections = [await open_connection() for _ in range(3)]
    reports = await asyncio.gather(
        *(import_channels(one, io.BytesIO(content), batch="news", schema=unique) for one in connections)
    )
    assert sum(report.added for report in reports) == 2000
    assert sum(report.listed for report in reports) == 2000
    assert all(report.added + report.existing == 2000 for report in reports)


async def test_an_import_that_is_interrupted_leaves_nothing(connection, load, unique):
    class Broken(io.BytesIO):
        def readline(self, size=-1):
            if self.tell() > 200_000:
                raise OSError("the disk is gone")
            return super().readline(size)

    content = ("username\n" + "".join(f"name{number}\n" for number in range(50_000))).encode()
    with pytest.raises(OSError, match="the disk is gone"):
        await import_channels(connection, Broken(content), batch="news", schema=unique)
    assert await _usernames(connection) == {}
    assert (await load("username\ngood\n")).added == 1  # the connection is usable


async def test_two_imports_in_one_transaction(connection, load):
    async with connection.transaction():
        await load("username\nfirst\n")
        await load("username\nsecond\n")
    assert set(await _usernames(connection)) == {"@first", "@second"}


@pytest.mark.slow
async def test_100_000_channels_are_imported_in_bounded_memory(connection, unique, tmp_path, store):
    file = tmp_path / "channels.csv"
    with file.open("w", encoding="utf-8") as out:
        out.write("username,category\n")
        out.writelines(f"https://t.me/channel_{number},category {number % 50}\n" for number in range(100_000))
    seen: list[tuple[int, int | None]] = []
    await import_channels(connection, io.BytesIO(b"username\nwarm_up\n"), schema=unique)
    tracemalloc.start()
    try:
        report = await import_channels(
            connection, file, batch="big", schema=unique, progress=lambda read, size: seen.append((read, size))
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = file.stat().st_size
    assert (report.added, report.listed, report.lines) == (100_000, 100_000, 100_000)
    assert peak < 2_000_000 < size
    assert len(seen) > 40
    assert seen == sorted(seen)
    assert seen[-1] == (size, size)
    ids = await (await connection.execute("SELECT count(DISTINCT id), min(length(id)) FROM channels")).fetchone()
    assert ids == (100_001, 25)


@pytest.mark.parametrize(
    "text", ["@@name", "name/", "a" * 33, "http://example.com/name", "te.me/name", "@na me", "t.me/", "-100123", "@"]
)
def test_other_texts_are_not_usernames(text):
    with pytest.raises(ValueError, match=r".+"):
        channel_names.username_of(text)
