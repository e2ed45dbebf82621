"""`watch` and the other displays: a bar in a terminal, lines in a pipe, and a quiet end at Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path


def test_a_terminal_shows_a_bar_until_the_campaign_ends(run, campaign, terminal, spawn, database):
    name = campaign(40, rate=1200)
    shown = terminal("watch", name)
    shown.until(r"spring  QUEUED  TEST")
    shown.until(r"not started: jobwire campaign start")
    run("start", name)
    shown.until(r"spring  RUNNING  TEST")
    run("pause", name, "--reason", "lunch")
    shown.until(r"spring  PAUSED  TEST\n+.*\n+.*\n+paused until it is resumed \(lunch\)")
    run("resume", name)
    worker = spawn("worker", "--burst", "--transport", "outbox:sent.jsonl")
    shown.until(r"━ +\d+ % \d+ of 40\n+\d+ sent · 0 failed · [\d,.]+/min, asked 1,200/min, \d+ s left")
    assert shown.ended() == 0
    worker.communicate(timeout=60)
    assert re.search(r"━{40} 100 % 40 of 40", shown.text)
    assert re.search(r"campaign 'spring' is COMPLETED in .+: 40 sent, 0 failed of 40", shown.text)
    assert "\x1b[?25h" in shown.raw[shown.raw.rindex("\x1b[?25l") :], "the cursor is not shown again"
    assert max(map(len, shown.text.split("\n"))) <= 80


def test_a_pipe_gets_a_line_for_each_change(run, campaign, spawn):
    name = campaign(50, rate=600)
    watching = spawn("watch", name)
    first = watching.stdout.readline()
    assert re.fullmatch(r"\d\d:\d\d:\d\d  QUEUED 0 %  not started  asked 600/min\n", first)
    run("start", name)
    spawn("worker", "--burst", "--transport", "outbox:sent.jsonl").communicate(timeout=60)
    out, err = watching.communicate(timeout=60)
    assert watching.returncode == 0, err
    *between, last = out.splitlines()
    assert re.fullmatch(r"campaign 'spring' is COMPLETED in .+: 50 sent, 0 failed of 50", last)
    assert between
    assert all("RUNNING" in line for line in between)
    assert any(re.search(r"  [\d,.]+/min, asked 600/min, \d+ s left$", line) for line in between), between
    assert "\x1b" not in out


def test_every_change_of_a_campaign_is_printed_as_json(run, campaign, spawn):
    name = campaign(3)
    assert run("start", name, "--json").json["status"] == "RUNNING"
    assert run("pause", name, "--reason", "lunch", "--json").json["paused_reason"] == "lunch"
    assert run("rate", name, 600, "--json").json["delivery_rate"] == 600
    watching = spawn("watch", name, "--json")
    assert json.loads(watching.stdout.readline())["status"] == "PAUSED"
    assert run("resume", name, "--json").json["status"] == "RUNNING"
    assert json.loads(watching.stdout.readline())["status"] == "RUNNING"
    assert run("cancel", name, "--json").json["status"] == "CANCELLED"
    out, _ = watching.communicate(timeout=60)
    assert [json.loads(line)["status"] for line in out.splitlines()][-1:] == ["CANCELLED"]
    assert watching.returncode == 1


def test_ctrl_c_leaves_without_a_word_and_the_campaign_goes_on(run, campaign, terminal, spawn):
    name = campaign(1)
    shown = terminal("watch", name)
    shown.until("not started")
    shown.interrupt()
    assert shown.ended() == 0
    assert "Traceback" not in shown.text
    assert "interrupted" not in shown.text
    assert shown.raw.rstrip().endswith("\x1b[?25h")
    watching = spawn("watch", name)
    watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    assert watching.communicate(timeout=60) == ("", "")
    assert watching.returncode == 0
    assert run("status", name, "--json").json["status"] == "QUEUED"


def test_a_failed_campaign_ends_with_its_error(run, campaign, database):
    name = campaign(1)
    run("start", name)
    database.execute("UPDATE campaigns SET status = 'FAILED', error = 'the session was revoked', completed_at = now()")
    said = run("watch", name)
    assert said.code == 1
    assert "campaign 'spring' is FAILED" in said.out
    assert said.err.startswith("the session was revoked\n")


def test_a_lost_connection_is_made_again_and_a_deleted_campaign_ends_the_watch(run, campaign, database, spawn, at):
    name = campaign(1)
    watching = spawn("watch", name)
    watching.stdout.readline()
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE %s",
        [f"%{at[3]}%campaigns%"],
    )
    run("start", name)
    assert "RUNNING" in watching.stdout.readline()
    database.execute("DELETE FROM campaigns")
    _, err = watching.communicate(timeout=60)
    assert watching.returncode == 4, err
    assert "there is no campaign" in err


def test_an_import_at_a_terminal_shows_a_bar(run, tables, terminal, tmp_path: Path):
    (tmp_path / "many.csv").write_text("username\n" + "".join(f"channel_{one}\n" for one in range(20_000)))
    shown = terminal("import-channels", "many.csv", "--batch", "news")
    assert shown.ended() == 0
    assert re.search(r"importing many.csv ━+ +100%", shown.text), shown.text
    assert "20,000 channels added, 20,000 listed in batch 'news'" in shown.text
