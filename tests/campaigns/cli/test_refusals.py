"""Whatever a user does wrong is one plain sentence with an exit code, never a traceback."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psycopg
import pytest
from psycopg import sql


def is_sentence(said, code, *parts):
    """The command has printed one sentence on stderr, with these parts, and nothing on stdout."""
    assert (said.code, said.out) == (code, ""), said
    assert said.err.startswith("jobwire: "), said
    assert said.err.count("\n") == 1, said
    for part in parts:
        assert part in said.err, said


def is_usage(said, *parts):
    """The command line itself is wrong. Typer frames its sentence, so it is compared without the frame."""
    assert (said.code, said.out) == (2, ""), said
    words = " ".join(said.err.replace("│", " ").split())
    for part in parts:
        assert part in words, said


@pytest.fixture
def dead() -> str:
    """The URL of a database that does not answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"postgresql://app:hunter2@127.0.0.1:{probe.getsockname()[1]}/app"


COMMANDS = [
    ("list",),
    ("status", "spring"),
    ("watch", "spring"),
    ("start", "spring"),
    ("channels",),
    ("purge", "--sent-before", "90d"),
    ("worker", "--burst"),
]


@pytest.mark.parametrize("command", [("init",), *COMMANDS], ids=lambda command: command[0])
def test_a_database_that_does_not_answer(call, dead, command):
    said = call(*command, "--url", dead)
    is_sentence(said, 3, "127.0.0.1", "unavailable")
    assert "hunter2" not in said.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_tables_that_do_not_exist_yet(run, command):
    is_sentence(run(*command), 1, "do not exist: run `jobwire campaign init`")


def test_tables_of_an_older_release(run, tables, database):
    database.execute("UPDATE jobwire_campaigns_version SET version = 1")
    is_sentence(run("list"), 1, "have version 1 and this jobwire needs", "run `jobwire campaign init`")


def test_a_url_of_the_queue(call):
    is_sentence(
        call("list", "--url", "pgboss+postgresql://app:hunter2@db/app?schema=x"), 1, "postgresql://app:***@db/app"
    )


def test_a_url_that_is_empty(call, monkeypatch):
    is_sentence(call("list", "--url", " "), 1, "--url: is empty")
    monkeypatch.setenv("JOBWIRE_CAMPAIGN_URL", "")
    is_sentence(call("list"), 1, "JOBWIRE_CAMPAIGN_URL: is empty")


def test_the_url_of_the_environment(call, at, monkeypatch):
    monkeypatch.setenv("JOBWIRE_CAMPAIGN_URL", at[1])
    is_sentence(call("list", *at[2:]), 1, "jobwire campaign init")


def test_a_password_that_is_wrong(call, at):
    wrong = at[1].replace("jobwire:", "jobwire:not", 1)
    is_sentence(call("list", "--url", wrong), 1, "authentication failed")


def test_a_schema_that_can_not_be(call, at):
    is_sentence(call("init", "--url", at[1], "--schema", "pg_mine"), 1, "must not begin with pg_")


@pytest.mark.parametrize("given", ["soon", "90", "d", "99999999999d", "2026-13-01", ""])
def test_an_age_that_can_not_be(call, dead, given):
    said = call("purge", "--sent-before", given, "--url", dead)
    is_usage(said, "write an age such as 90d or a time such as 2026-01-31")


@pytest.mark.usefixtures("tables")
class TestWithTables:
    def test_lists_without_anything(self, run):
        is_sentence(run("list"), 4, "there are no campaigns")
        is_sentence(run("list", "--status", "paused", "--json"), 4, "there are no PAUSED campaigns")
        is_sentence(run("channels", "--active"), 4, "there are no active channels")
        is_sentence(run("batches"), 4, "there are no batches", "import-channels")
        is_sentence(run("templates"), 4, "there are no templates", "templates add")
        is_sentence(run("purge", "--sent-before", "1d", "--yes"), 4, "no message was sent before")

    def test_a_state_that_does_not_exist(self, run):
        is_usage(run("list", "--status", "pausd"), "did you mean paused?")
        is_usage(run("list", "--status", "x"), "queued, running, paused, completed, failed or cancelled")

    def test_files_that_can_not_be_imported(self, run, tmp_path):
        is_sentence(run("import-channels", "nope.csv", "--batch", "b"), 1, "nope.csv: no such file or directory")
        is_sentence(run("import-channels", tmp_path, "--batch", "b"), 1, "is a directory")
        Path("empty.csv").write_text("")
        is_sentence(run("import-channels", "empty.csv", "--batch", "b"), 1, "is empty")
        Path("other.csv").write_text("user_name\nnews\n")
        is_sentence(run("import-channels", "other.csv", "--batch", "b"), 1, "did you mean username?")
        is_usage(run("import-channels", "other.csv"), "--batch")

    def test_bad_lines_are_listed_with_number_and_reason(self, run):
        Path("bad.csv").write_text("username\ngood_one\n" + "b!d\n" * 25)
        said = run("import-channels", "bad.csv", "--batch", "news")
        lines = said.err.splitlines()
        assert (said.code, said.out) == (1, "")
        assert lines[0].startswith("line 3: username 'b!d'")
        assert lines[-2] == "and 5 more"
        assert "nothing was imported: 25 of 26 lines" in lines[-1]
        assert "--skip-bad" in lines[-1]
        assert run("channels").code == 4
        assert run("import-channels", "bad.csv", "--batch", "news", "--bad-lines", "all.csv").code == 1
        header, *rows = Path("all.csv").read_text().splitlines()
        assert (header, len(rows), rows[-1].partition(",")[0]) == ("line,reason", 25, "27")
        said = run("import-channels", "bad.csv", "--batch", "news", "--bad-lines", "no/where.csv")
        is_sentence(said, 1, "no/where.csv: no such file or directory")
        said = run("import-channels", "bad.csv", "--batch", "news", "--skip-bad")
        assert said.out == "1 channel added, 1 listed in batch 'news'\n25 bad lines left out\n"
        assert said.err.startswith("line 3: ")
        assert run("import-channels", "bad.csv", "--batch", "news", "--skip-bad", "--json").json["existing"] == 1

    def test_templates_that_can_not_be(self, run, monkeypatch):
        is_sentence(run("templates", "add", "a", "--content", "Hello {name"), 1, "single {")
        is_sentence(run("templates", "add", "a", "--content", ""), 1, "content")
        is_sentence(run("templates", "add", "a", "--content", "x" * 5000), 1, "4,096")
        is_sentence(run("templates", "add", "a", "--content", "x", "--media-type", "photo"), 1, "media_url: is needed")
        is_usage(run("templates", "add", "a"), "--content")
        Path("latin").write_bytes("Grüße".encode("latin-1"))
        with Path("latin").open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            is_usage(run("templates", "add", "a", "--content", "-"), "is not UTF-8 (byte 3)")
        assert run("templates").code == 4
        run("templates", "add", "a", "--content", "x")
        is_sentence(run("templates", "add", "a", "--content", "y"), 1, "is the name of another template")

    def test_options_before_the_name_of_a_subcommand(self, call, at):
        is_usage(call("channels", *at, "activate", "news"), "write --url after activate")
        is_usage(call("templates", "--schema", "x", "add", "a", "--content", "x"), "write --schema after add")

    def test_a_transport_that_can_not_be_used(self, run):
        is_sentence(run("worker", "--transport", "outbx:x"), 1, "did you mean outbox?")
        is_sentence(run("worker", "--transport", "webhook:"), 1, "webhook")
        said = run("worker", "--burst", "--transport", "outbox:./no/such/folder/out.jsonl")
        assert said.code == 1
        assert "no/such/folder" in said.err.splitlines()[-1]
        assert "Traceback" not in said.err
        is_sentence(run("worker", "--concurrency", "0"), 1, "concurrency: must be at least 1")

    def test_a_database_that_refuses_to_write(self, run, database, unique):
        database.execute("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS "
                         "$$ BEGIN RAISE insufficient_privilege USING MESSAGE = 'not for you'; END $$")  # fmt: skip
        database.execute("CREATE TRIGGER no BEFORE INSERT ON templates EXECUTE FUNCTION no()")
        is_sentence(run("templates", "add", "a", "--content", "x"), 1, "the database has refused: not for you")

    def test_a_purge_is_not_done_without_an_answer(self, run, database, campaign, answering):
        name = campaign(1)
        run("start", name)
        database.execute(
            "INSERT INTO jobs (id, campaign_id, channel_id, status, attempts, sent_at)"
            " SELECT 'j', c.id, h.id, 'SENT', 1, now() - interval '100 days' FROM campaigns c, channels h"
        )
        is_usage(run("purge", "--sent-before", "90d"), "nothing was done", "add --yes to delete 1 row")
        answering("\n")
        said = run("purge", "--sent-before", "2w")
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith("Delete 1 row of messages sent before ")
        assert said.err.endswith("? [y/N] jobwire: nothing was done\n")
        is_sentence(run("purge", "--sent-before", "101d"), 4, "no message was sent before")
        answering("yes\n")
        assert run("purge", "--sent-before", "2w").out == "deleted 1 row\n"


class TestWithACampaign:
    @pytest.fixture(autouse=True)
    def name(self, campaign):
        return campaign(1)

    def test_a_wrong_name(self, run):
        for command in ("start", "pause", "resume", "cancel", "status", "watch", "preview", "report", "rate"):
            said = run(command, "sprng", *([5] if command == "rate" else []))
            is_sentence(said, 4, "there is no campaign 'sprng'; did you mean 'spring'?")

    def test_arguments_that_are_not_utf_8(self, call, at, run, name):
        bad = os.fsdecode(b"\xff")
        for command in (
            ("status", bad), ("rate", bad, 5), ("pause", name, "--reason", bad), ("channels", "activate", bad),
            ("channels", "--batch", bad), ("create", "b", "--batch", bad, "--template", "spring text", "--rate", 1),
            ("create", bad, "--batch", "spring channels", "--template", "spring text", "--rate", 1),
            ("create", "b", "--batch", "spring channels", "--template", "spring text", "--rate", 1,
             "--description", bad),
            ("import-channels", "spring.csv", "--batch", bad), ("templates", "add", "a", "--content", bad),
            ("templates", "add", bad, "--content", "x"),
        ):  # fmt: skip
            is_sentence(run(*command), 1, "must be valid Unicode")
        is_sentence(call("list", *at, "--schema", bad), 1, "schema: must be valid Unicode")
        is_sentence(call("list", *at, "--queue-schema", bad), 1, "schema: must be valid Unicode")
        is_sentence(call("list", "--url", f"postgresql://{bad}"), 1, "url: must be valid Unicode")

    def test_wrong_names_of_other_things(self, run):
        options = ("--rate", 1, "--template", "spring text")
        is_sentence(run("create", "b", "--batch", "sprng channels", *options), 4, "did you mean 'spring channels'?")
        options = ("--rate", 1, "--batch", "spring channels")
        is_sentence(run("create", "b", "--template", "spring txt", *options), 4, "did you mean 'spring text'?")
        is_sentence(run("channels", "--batch", "sprng channels"), 4, "did you mean 'spring channels'?")
        is_sentence(run("channels", "activate", "sprin_0"), 4, "there is no channel 'sprin_0'")

    def test_values_that_can_not_be(self, run, name):
        options = ("--batch", "spring channels", "--template", "spring text")
        is_sentence(run("create", "b", *options, "--rate", 0), 1, "rate: must be at least 1")
        is_sentence(run("create", "b", *options, "--rate", 10**12), 1, "rate: must be at most")
        is_usage(run("create", "b", *options, "--rate", "fast"), "--rate")
        is_usage(run("create", "b", *options), "--rate")
        is_sentence(
            run("create", "b", *options, "--rate", 1, "--retry-limit", -1), 1, "retry_limit: must be at least 0"
        )
        is_sentence(
            run("create", "b", *options, "--rate", 1, "--retry-limit", 1001), 1, "retry_limit: must be at most 1000"
        )
        is_sentence(run("create", "b", *options, "--rate", 1, "--mode", "lief"), 1, "must be TEST or LIVE")
        is_sentence(run("create", "", *options, "--rate", 1), 1, "name: must not be empty")
        is_sentence(run("create", name, *options, "--rate", 1), 1, "is the name of another campaign")
        is_sentence(run("rate", name, 0), 1, "rate: must be at least 1")
        is_usage(run("rate", name, "fast"), "integer")
        is_usage(run("preview", name, "--limit", 0), "--limit")
        assert len(run("list", "--json").lines) == 1

    def test_parameters_that_can_not_be(self, run):
        run("templates", "add", "meet", "--content", "{username}: {product}")
        options = ("--batch", "spring channels", "--template", "meet", "--rate", 1)
        is_sentence(run("create", "b", *options), 1, "parameter product is missing", "add --param product=…")
        is_sentence(run("create", "b", *options, "--param", "prodct=Tea"), 1, "did you mean product?")
        is_sentence(run("create", "b", *options, "--param", "username=x"), 1, "is filled in from each channel")
        is_usage(run("create", "b", *options, "--param", "product"), "write KEY=VALUE")
        is_usage(run("create", "b", *options, "--param", "=x"), "write KEY=VALUE")
        is_usage(run("create", "b", *options, "--param", "product=1", "--param", "product=2"), "product is given twice")
        run("templates", "add", "sorted", "--content", "{category}")
        options = ("--batch", "spring channels", "--template", "sorted", "--rate", 1)
        is_sentence(run("create", "b", *options), 1, "parameter category is missing: 1 active channels")

    def test_changes_that_the_state_does_not_allow(self, run, name):
        is_sentence(run("pause", name), 1, "campaign 'spring' is QUEUED and can't become PAUSED")
        is_sentence(run("resume", name), 1, "campaign 'spring' is QUEUED: start it instead")
        run("start", name)
        is_sentence(run("start", name), 1, "campaign 'spring' is RUNNING and can't become RUNNING")
        run("cancel", name)
        is_sentence(run("start", name), 1, "it has ended and can't change any more")
        is_sentence(run("rate", name, 5), 1, "can't be changed", "CANCELLED")

    def test_a_live_campaign_is_not_started_without_an_answer(self, run, campaign, answering):
        live = campaign(2, "summer", "--mode", "LIVE")
        is_usage(run("start", live), "add --yes to send campaign 'summer' to 2 real channels")
        answering("n\n")
        said = run("start", live)
        assert (said.code, said.out) == (1, "")
        assert (
            said.err
            == "Send campaign 'summer' to 2 real channels, 100,000 per minute? [y/N] jobwire: nothing was done\n"
        )
        assert run("status", live, "--json").json["status"] == "QUEUED"
        answering("y\n")
        assert "is RUNNING" in run("start", live).out

    def test_a_preview_without_channels(self, run, name, database):
        database.execute("UPDATE channels SET is_active = false")
        is_sentence(run("preview", name), 4, "has no active channel")

    def test_a_file_of_deliveries_that_can_not_be_written(self, run, name, tmp_path):
        is_sentence(run("report", name, "--deliveries", "no/where.csv"), 1, "no/where.csv: no such file or directory")
        is_sentence(run("report", name, "--deliveries", tmp_path), 1, "is a directory")
        (tmp_path / "old.csv").write_text("kept")
        assert run("report", "sprng", "--deliveries", "old.csv").code == 4
        assert (tmp_path / "old.csv").read_text() == "kept"

    def test_a_channel_whose_name_is_taken_is_not_activated(self, run, database):
        database.execute("INSERT INTO channels (id, username, is_active) VALUES ('old', '@spring_0', false)")
        is_sentence(run("channels", "activate", "old"), 1, "the database has refused")


def test_a_user_without_rights_to_the_tables(call, at, tables, unique):
    with psycopg.connect(at[1], autocommit=True) as connection:
        role = sql.Identifier(unique)
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'pw'").format(role))
        try:
            connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(role, role))
            other = at[1].split("@")[1]
            said = call("list", "--url", f"postgresql://{unique}:pw@{other}", *at[2:])
            is_sentence(said, 1, "permission denied")
        finally:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
            connection.execute(sql.SQL("DROP ROLE {}").format(role))
