"""Private values of real jobs, on every protocol: nowhere in the lake, the report or the archive."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import redis

from jobwire import Backoff, Feature, State, Unrecoverable, urls
from jobwire.flow import FlowJob
from jobwire.native import BridgeMQWorker, MonqueWorker, PgBossWorker
from jobwire.pipeline import Lake, build, find_sources, ingest, read_table, restore
from jobwire.pipeline.archive import archive
from jobwire.pipeline.move.plan import jobs_of
from jobwire.pipeline.privacy.batches import ID_REASON, private_events, private_jobs
from jobwire.pipeline.privacy.rules import parse_rules
from jobwire.pipeline.report.from_lake import report
from jobwire.pipeline.spark.session import for_little
from jobwire.pipeline.stores.address import store_name
from jobwire.pipeline.stores.boundary import Wanted, open_store
from jobwire.pipeline.stores.dialect import dialect_of
from jobwire.sync import Flow, Queue, Worker

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]

PRIVATE = ("Quillfeather", "zebrawood", "4915112345678", "4111222233334444", "opensesame")
PAYLOAD = {
    "to": "Ann.Quillfeather@example.org",
    "address": {"street": "7 Zebrawood Lane", "phone": 4915112345678},
    "cards": [{"number": "4111222233334444", "kind": "debit"}],
    "tenant": "acme",
}
RULES = {
    "mail": {"$.to": "hash", "$.address": "drop", "$.cards[*].number": "mask", "result.password": "mask"},
}
KEY = "a key for tests alone"
REMEMBERING = {
    "monque": MonqueWorker(max_retries=2, base_retry_interval=0.02),
    "pgboss": PgBossWorker(remember_attempts=3600),
    "bridgemq": BridgeMQWorker(remember_attempts=3600),
}


def handle(job: Any) -> Any:
    """Shows the private values wherever a handler can."""
    job.update_progress({"sending to": job.data["to"]})
    job.log(f"calling {job.data['address']['phone']}")
    if job.data["n"] == 1:
        raise Unrecoverable(f"no mailbox for {job.data['to']} in 7 ZEBRAWOOD lane")
    if job.data["n"] == 2 and job.attempts_made == 0:
        raise ValueError(f"card {job.data['cards'][0]['number']} was refused")
    return {"sent": f"<{job.data['to'].lower()}>", "password": "opensesame"}


def run_jobs(url: str) -> None:
    protocol = urls.parse(url).protocol
    with Queue("mail", url) as queue:
        for n in range(4):
            own = {"attempts": 2, "backoff": Backoff.fixed(0.02)} if queue.capabilities.has(Feature.ATTEMPTS) else {}
            queue.add({**PAYLOAD, "n": n}, **own)
        worker = Worker("mail", handle, url, native=REMEMBERING.get(protocol))
        thread = threading.Thread(target=lambda: worker.run(signals=False))
        thread.start()
        try:
            for _ in range(400):
                counts = queue.counts()
                if counts[State.COMPLETED] == 3 and counts[State.FAILED] == 1:
                    return
                threading.Event().wait(0.05)
            raise AssertionError(f"the worker did not finish: {queue.counts()}")
        finally:
            worker.stop()
            thread.join()


def texts_of(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields every file's name and content, of Parquet files the values of all columns."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix == ".parquet":
            table = pq.read_table(path, partitioning=None)
            for name in table.column_names:
                yield f"{path}:{name}", "\n".join(map(str, table[name].to_pylist()))
        elif path.is_file():
            yield str(path), path.read_bytes().decode(errors="replace")


def leaks(folder: Path) -> list[str]:
    return [
        f"{value} in {name}" for name, text in texts_of(folder) for value in PRIVATE if value.lower() in text.lower()
    ]


def test_covered_values_are_nowhere_in_the_lake_the_report_or_the_archive_of_any_protocol(
    spark: Any, place: Callable[[str], str], tmp_path: Path
) -> None:
    stores = {protocol: place(protocol) for protocol in ("bullmq", "bridgemq", "pgboss", "monque")}
    for url in stores.values():
        run_jobs(url)
    lake, privacy = Lake(str(tmp_path / "lake")), parse_rules(RULES, KEY)

    with ExitStack() as stack:
        assert ingest(spark, lake, find_sources(stack, list(stores.values()), privacy=privacy)).good
    build(spark, lake)
    report(lake, tmp_path / "report")
    later = datetime.now(UTC) + timedelta(hours=1)
    with for_little(spark, 100):
        archived = [archive(spark, lake, url, "mail", later, purge=True, privacy=privacy) for url in stores.values()]

    assert leaks(tmp_path) == []
    assert {(one.archived, one.purged) for one in archived} == {(4, 4)}
    jobs = read_table(lake.root, "silver/jobs").to_pylist()
    [hashed] = {json.loads(job["payload"])["to"] for job in jobs}  # equal in all stores: they can be joined
    assert hashed.startswith("hash:")
    assert {job["payload_hash"] for job in jobs if '"n":0' in job["payload"]} != set()
    for job in jobs:
        assert json.loads(job["payload"]) | {"n": 0} == {
            "to": hashed,
            "cards": [{"number": "***", "kind": "debit"}],
            "tenant": "acme",
            "n": 0,
        }
    runs = read_table(lake.root, "silver/attempts").to_pylist()
    failures = {(urls.parse(run["store"]).protocol, run["error"]) for run in runs if run["outcome"] == "failed"}
    assert all("***" in error for _, error in failures), failures
    assert {protocol for protocol, error in failures if "no mailbox for *** in ***" in error} == set(stores)
    assert {protocol for protocol, error in failures if "card *** was refused" in error} == set(stores)

    url = stores["pgboss"]
    with Queue("mail", url) as queue:
        queue.add(PAYLOAD)
    [to_move] = jobs_of(spark, url, "mail", store_name(url), "waiting").collect()
    assert json.loads(to_move["payload"]) == PAYLOAD  # a move reads all values

    url = stores["bullmq"]
    restored = restore(spark, lake, url, "mail", where="state = 'completed'")
    assert restored.restored == 3
    assert restored.private == ("$.address = drop", "$.cards[*].number = mask", "$.to = hash", "result.password = mask")
    with Queue("mail", url) as queue:
        assert {job.data["to"] for job in queue.jobs(state="completed")} == {hashed}


def read_privately(url: str, queue: str, rules: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the jobs and events of a queue as Spark's processes would."""
    privacy, dialect = parse_rules(rules, None), dialect_of(urls.parse(url).protocol)
    store = open_store(urls.parse(url), queue, store_name(url))
    try:
        jobs = [batch for part in store.plan_jobs(Wanted(), 2) for batch in store.read_jobs(part, Wanted())]
        first = store.first_offset()
        parts = store.plan_events(first, store.latest_offset(first, None))
        events = [batch for part in parts for batch in store.read_events(part)]
        private = private_jobs(iter(jobs), privacy, queue, dialect)
        told = private_events(iter(events), privacy.of_queue(queue), store.payloads, dialect)
        return [row for batch in private for row in batch.to_pylist()], [row for one in told for row in one.to_pylist()]
    finally:
        store.close()


def test_events_of_jobs_that_are_gone_and_rows_that_cannot_be_read_hold_no_private_value(
    place: Callable[[str], str], jobwire_valkey: Any
) -> None:
    url = place("bullmq")
    run_jobs(url)
    prefix = urls.parse(url).options["prefix"]
    with Queue("mail", url) as queue, redis.Redis.from_url(jobwire_valkey.url) as client:
        for job in queue.jobs(state="failed"):
            queue.admin.remove(job.id)
        broken = queue.add(PAYLOAD)
        client.hset(f"{prefix}:mail:{broken.id}", "data", '{"to": "Ann.Quillfeather@example.org')
        queue.add(PAYLOAD, id="welcome-ann.quillfeather@example.org")

    jobs, events = read_privately(url, "mail", {"mail": {"$.to": "mask", "$.address": "drop"}})

    assert [value for value in PRIVATE[:3] if value.lower() in str([jobs, events]).lower()] == []
    assert {row["malformed"] for row in jobs} == {None, "its data is not JSON: ***", ID_REASON}
    assert {row["malformed"] for row in events} == {None, ID_REASON}
    reasons = [json.loads(row["data"]).get("failedReason") for row in events if row["kind"] == "failed"]
    assert reasons == ["***"]  # its job was removed


def test_a_parent_does_not_keep_the_private_results_of_its_children(place: Callable[[str], str]) -> None:
    url = place("bullmq")
    with Flow(url) as flow:
        flow.add(FlowJob("letters", {}, children=[FlowJob("mail", PAYLOAD), FlowJob("other", {})]))
    for queue in ("mail", "other", "letters"):
        Worker(queue, lambda job: f"sent to {job.data.get('to')}", url).run_until_idle(signals=False)

    [parent], _ = read_privately(url, "letters", {"mail": {"$.to": "mask"}})

    assert sorted(json.loads(parent["raw"])[":processed"].values()) == ['"***"', '"sent to None"']
