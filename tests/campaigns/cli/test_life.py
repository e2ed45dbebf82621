"""The life of a campaign by commands, from the tables to the purge."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from service_inbox import Inbox


def deliveries() -> list[dict[str, str]]:
    with Path("who.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_campaign_goes_from_the_tables_to_the_report(run, spawn, tmp_path: Path):
    assert "made the campaign tables" in run("init").out
    assert "is up to date" in run("init").out

    Path("channels.csv").write_text(
        "username,category\nnews,press\n@tea_house,shop\nt.me/spring_sale,shop\nnews,press\n"
    )
    said = run("import-channels", "channels.csv", "--batch", "news")
    assert said.out == "3 channels added, 3 listed in batch 'news'\n1 line repeated an earlier one\n"
    [batch] = run("batches", "--json").lines
    assert (batch["name"], batch["channels"], batch["active"]) == ("news", 3, 3)
    assert "news" in run("batches").out
    assert sorted(one["username"] for one in run("channels", "--batch", "news", "--json").lines) == [
        "@news",
        "@spring_sale",
        "@tea_house",
    ]
    assert sorted(line.split() for line in run("channels").out.splitlines())[0] == ["@news", "press", "active"]

    said = run("templates", "add", "hello", "--content", "Hello {username}, meet {product}!")
    assert said.out == "added template 'hello'\n"
    assert "--param product=…" in said.err
    assert [one["content"] for one in run("templates", "--json").lines] == ["Hello {username}, meet {product}!"]
    assert "Hello {username}, meet {product}!" in run("templates").out

    options = ("--batch", "news", "--template", "hello", "--rate", "100000", "--param", "product=Green Tea=")
    said = run("create", "spring", *options, "--description", "of the shop", "--mode", "live", "--retry-limit", 1)
    assert said.out == (
        "created campaign 'spring': 3 active channels of 3, 100,000 messages per minute\n"
        "LIVE: its messages reach the channels\n"
    )
    said = run("preview", "spring", "--limit", 1)
    assert said.out.startswith("to @")
    assert ", meet Green Tea=!" in said.out
    assert len(run("preview", "spring", "--json").json) == 3
    status = run("status", "spring", "--json").json
    assert (status["status"], status["description"], status["retry_limit"]) == ("QUEUED", "of the shop", 1)

    said = run("start", status["id"], "--yes")
    assert said.out == "campaign 'spring' is RUNNING: 3 channels, 100,000 messages per minute\n"
    worker = spawn("worker", "--burst", "--transport", "outbox:sent.jsonl", "--concurrency", 2)
    _, log = worker.communicate(timeout=120)
    assert worker.returncode == 0, log
    assert "sent.jsonl" in log

    sent = [json.loads(line) for line in Path("sent.jsonl").read_text().splitlines()]
    assert sorted(one["text"] for one in sent) == [
        "Hello @news, meet Green Tea=!",
        "Hello @spring_sale, meet Green Tea=!",
        "Hello @tea_house, meet Green Tea=!",
    ]
    [listed] = run("list", "--status", "completed", "--json").lines
    assert (listed["name"], listed["sent"], listed["failed"], listed["progress"]) == ("spring", 3, 0, 100)
    assert datetime.fromisoformat(listed["completed_at"]) >= datetime.fromisoformat(listed["started_at"])
    assert run("list").out.splitlines()[1].split() == [
        "spring",
        "COMPLETED",
        "LIVE",
        "100",
        "%",
        "3",
        "0",
        "3",
        "100,000",
    ]
    assert "3 sent, 0 failed of 3" in run("status", "spring").out

    said = run("report", "spring", "--deliveries", "who.csv")
    assert "campaign 'spring' is COMPLETED, mode LIVE" in said.out
    assert "3 sent, 0 failed of 3 messages" in said.out
    assert "100,000/min asked" in said.out
    assert "3 lines written to who.csv" in said.err
    rows = deliveries()
    assert sorted((row["username"], row["status"], row["attempts"]) for row in rows) == [
        ("@news", "SENT", "1"),
        ("@spring_sale", "SENT", "1"),
        ("@tea_house", "SENT", "1"),
    ]
    assert run("report", "spring", "--json").json["counts"]["sent"] == 3

    said = run("purge", "--sent-before", "0m", "--yes")
    assert said.out == "deleted 3 rows\n"
    said = run("report", "spring")
    assert "3 sent, 0 failed of 3 messages" in said.out
    assert "3 rows of sent messages purged" in said.out


def test_a_campaign_is_paused_resumed_slowed_and_cancelled(run, campaign):
    name = campaign(2)
    said = run("start", name)
    assert said.out.endswith("TEST: nothing reaches a real channel\n")
    said = run("pause", name, "--reason", "a typo\x1b[2J")
    assert said.out == "campaign 'spring' is PAUSED: its messages are not counted yet\n"
    said = run("status", name)
    assert "paused until it is resumed (a typo\\x1b[2J)" in said.out
    assert run("rate", name, 30).out == "campaign 'spring': 30 messages per minute, before 100,000\n"
    assert "is RUNNING" in run("resume", name).out
    assert "is CANCELLED" in run("cancel", name).out
    assert run("list", "--status", "cancelled", "--json").lines[0]["delivery_rate"] == 30
    assert run("watch", name).code == 1


def test_failures_are_reported_by_reason_with_an_example(run, campaign, database, tmp_path):
    name = campaign(5)
    run("start", name)
    database.execute(
        "INSERT INTO jobs (id, campaign_id, channel_id, status, attempts, error_message, failed_at, sent_at)"
        " SELECT 'j' || row_number() OVER (), (SELECT id FROM campaigns), id,"
        " CASE WHEN row_number() OVER () > 3 THEN 'SENT' ELSE 'FAILED' END, 1,"
        " CASE row_number() OVER () WHEN 1 THEN 'USER_BANNED: no' WHEN 2 THEN 'FORBIDDEN: [red]a, \"b\"'"
        " WHEN 3 THEN 'FORBIDDEN: z' END, CASE WHEN row_number() OVER () < 4 THEN now() END,"
        " CASE WHEN row_number() OVER () > 3 THEN now() + row_number() OVER () * interval '1 second' END FROM channels"
    )
    said = run("report", name, "--deliveries", "who.csv")
    assert "60/min reached, 100,000/min asked" in said.out
    table = said.out.partition("failures")[2].splitlines()
    assert table[1].split(maxsplit=2) == ["2", "FORBIDDEN", 'FORBIDDEN: [red]a, "b"']
    assert table[2].split() == ["1", "USER_BANNED", "USER_BANNED:", "no"]
    rows = {row["job_id"]: row for row in deliveries()}
    assert rows["j2"]["error_message"] == 'FORBIDDEN: [red]a, "b"'
    assert datetime.fromisoformat(rows["j2"]["failed_at"]).tzinfo is not None
    assert (rows["j4"]["status"], rows["j4"]["error_message"]) == ("SENT", "")
    assert [file.name for file in tmp_path.glob("who*")] == ["who.csv"]

    os.mkfifo("pipe.csv")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(Path("pipe.csv").read_text)
        assert run("report", name, "--deliveries", "pipe.csv").code == 0
        assert read.result(60).replace("\r\n", "\n") == Path("who.csv").read_text()


def test_the_csv_of_deliveries_is_read_in_pages(run, campaign, database, monkeypatch):
    monkeypatch.setattr("jobwire.cli.commands.campaign.session._PAGE", 2)
    name = campaign(5)
    run("start", name)
    database.execute(
        "INSERT INTO jobs (id, campaign_id, channel_id, status)"
        " SELECT 'j' || id, (SELECT id FROM campaigns), id, 'QUEUED' FROM channels"
    )
    run("report", name, "--deliveries", "who.csv")
    rows = deliveries()
    assert sorted(row["username"] for row in rows) == [f"@spring_{one}" for one in range(5)]
    assert len(run("channels", "--json").lines) == 5


def test_a_channel_is_activated(run, campaign, database):
    campaign(2)
    database.execute(
        "UPDATE channels SET is_active = false, error_count = 5, last_error = 'gone' WHERE username = '@spring_0'"
    )
    assert run("channels", "--inactive").out.split() == ["@spring_0", "-", "inactive", "5", "errors", "gone"]
    assert run("channels", "activate", "https://t.me/spring_0").out == "@spring_0 is active\n"
    assert run("channels", "--inactive").code == 4
    assert len(run("channels", "--active", "--json").lines) == 2


def test_the_worker_stops_at_sigterm_and_leaves_the_rest(run, campaign, spawn):
    name = campaign(100, rate=60)
    run("start", name)
    worker = spawn("worker", "--transport", "outbox:sent.jsonl")
    while "messages to send" not in worker.stderr.readline():
        assert worker.poll() is None
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert run("status", name, "--json").json["status"] == "RUNNING"


def test_a_template_is_read_from_stdin(run, tables, monkeypatch, tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("Grüße\n\nan {username}\n")
    with file.open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert (
            run(
                "templates", "add", "long", "--content", "-", "--media-type", "photo", "--media-url", "https://a.b/c"
            ).code
            == 0
        )
    [made] = run("templates", "--json").lines
    assert (made["content"], made["media_type"]) == ("Grüße\n\nan {username}", "PHOTO")
    assert "Grüße⏎⏎an {username}" in run("templates").out


def test_a_campaign_whose_start_is_unknown_is_shown_as_started(run, campaign, database):
    campaign(1)
    database.execute("UPDATE campaigns SET status = 'PAUSED', total_jobs = 2, sent = 1")
    database.execute("INSERT INTO jobs SELECT 'j', campaigns.id, channels.id, 'QUEUED', 2 FROM campaigns, channels")
    assert "1 sent, 0 failed of 2" in run("status", "spring").out
    assert run("report", "spring").out.splitlines()[2:] == [
        "it is unknown when it was started",
        "1 sent, 0 failed of 2 messages",
        "1 is not sent yet",
        "1 row of sent messages purged: they are in the counts above only",
        "1 took more than one attempt",
    ]


def test_a_worker_reports_its_life_to_the_service_manager(spawn, tables, unique, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{unique}")
    monkeypatch.setenv("WATCHDOG_USEC", "600000")
    inbox = Inbox(f"\0{unique}")
    with contextlib.closing(inbox.socket):
        worker = spawn("worker", "--transport", "outbox:sent.jsonl")
        for line in ("READY=1", "WATCHDOG=1", "STATUS=0 jobs running, 0 completed, 0 failed"):
            if line not in inbox.seen:
                inbox.until(line)
        worker.send_signal(signal.SIGTERM)
        inbox.until("STOPPING=1")
        assert worker.wait(timeout=30) == 0
