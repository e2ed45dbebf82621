"""Campaigns in Spark: their tables are read whole, ingested again and again, and counted as the rows are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobwire.embedded import Server
from jobwire.errors import StoreRefused
from jobwire.pipeline.history.build import BuildResult, build
from jobwire.pipeline.history.ingest import IngestResult, find_sources, ingest
from jobwire.pipeline.lake.campaign_schemas import CAMPAIGNS, CHANNELS, DELIVERIES
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.campaigns.tables import campaign_tables
from pipeline.campaign_rows import (
    CLASSES,
    EVERYTHING,
    FIRST,
    HEALTH,
    LATER,
    MANY,
    NOW,
    RATES,
    Sent,
    Tables,
    at,
    campaign_database,
)

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def tables(jobwire_postgres: Server) -> Iterator[Tables]:
    with campaign_database(jobwire_postgres.url) as made:
        yield made


@dataclass(frozen=True)
class History:
    """The database, ingested and built twice, and built once more: before the second time, LATER was settled."""

    deliveries: list[Any]
    """As the data source reads them at first."""
    lake: str
    ingests: list[IngestResult]
    builds: list[BuildResult]
    silent: list[dict[str, datetime]]
    """After each build."""

    def gold(self, name: str) -> list[dict[str, Any]]:
        return read_table(self.lake, f"gold/{name}").to_pylist()


@pytest.fixture(scope="module")
def history(spark: Any, tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> History:
    lake = Lake(str(tmp_path_factory.mktemp("campaigns") / "lake"))
    whole = read(spark, tables, "deliveries", parts=4)
    assert whole.schema == DELIVERIES.spark
    made = History(whole.withColumn("part", F.spark_partition_id()).collect(), lake.root, [], [], [])
    with ExitStack() as stack:
        sources = find_sources(stack, [tables.url])
    for rows in ([], LATER):
        tables.settle(rows)
        made.ingests.append(ingest(spark, lake, sources))
        made.builds.append(build(spark, lake))
        health = made.gold("channel_health")
        made.silent.append({row["channel_id"]: row["silent_since"] for row in health if row["silent_since"]})
    made.builds.append(build(spark, lake))
    return made


def read(spark: Any, tables: Tables, table: str, **options: Any) -> Any:
    return spark.read.format("jobwire").options(table=table, **options).load(tables.url)


def utc(time: datetime | None) -> datetime | None:
    """Spark gives times in the machine's zone, without naming it."""
    return None if time is None else time.astimezone(UTC)


def test_the_example_of_the_page_counts_failures(
    spark: Any, tables: Tables, history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pipeline" / "index.md").read_text()
    [example] = [one for one in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "deliveries" in one]
    exec(example.replace("postgresql://db.example/app", tables.url), {"spark": spark})
    assert re.search(r"\| *campaign\| *reason\|count\|", capsys.readouterr().out)


def test_deliveries_are_read_once_with_their_campaign_and_channel(history: History) -> None:
    rows = {row["id"]: row for row in history.deliveries}

    assert len(history.deliveries) == len(rows) == EVERYTHING
    assert len({row["part"] for row in rows.values()}) > 1
    for one in FIRST:
        row, mode = rows[one.id], "TEST" if one.campaign == "trial" else "LIVE"
        told = (one.campaign, f"the {one.campaign}", f"@{one.channel}xx", mode, RATES[one.campaign])
        assert tuple(row[name] for name in ("campaign_id", "campaign", "channel", "mode", "delivery_rate")) == told
        told = (one.status, one.attempts, one.error, one.reason)
        assert tuple(row[name] for name in ("status", "attempts", "error", "reason")) == told
        assert (utc(row["sent_at"]), utc(row["failed_at"]), utc(row["started_at"])) == (*one.ends, one.moment)


def test_a_bad_row_is_read_with_what_is_wrong_with_it(history: History) -> None:
    rows = {row["id"]: row for row in history.deliveries}

    names = ("campaign_id", "campaign", "channel_id", "channel", "malformed")
    assert tuple(rows["z1"][name] for name in names) == ("gone", None, "gone", None, None)
    assert (rows["z2"]["sent_at"], rows["z2"]["malformed"]) == (None, "sent_at is infinity, not a date")


def test_campaigns_and_channels_are_read_as_they_are(spark: Any, tables: Tables) -> None:
    campaigns, channels = read(spark, tables, "campaigns"), read(spark, tables, "channels")

    assert (campaigns.schema, channels.schema) == (CAMPAIGNS.spark, CHANNELS.spark)
    found = {row["id"]: row for row in campaigns.collect()}
    assert {name: row["delivery_rate"] for name, row in found.items()} == RATES
    spring = found["spring"]
    assert (spring["batch"], spring["template"], spring["created_by"]) == ("news", "hello", "ann")
    assert (spring["sent"], spring["failed"], json.loads(spring["params"])) == (4, 2, {"x": "ä"})
    assert spring["store"].startswith("postgresql://")
    assert spring["store"].endswith(f"?schema={tables.schema}")
    rows = channels.collect()
    assert {row["id"]: (row["is_active"], row["error_count"]) for row in rows} == HEALTH
    assert {row["category"] for row in rows} == {'a, "b"'}


def rows_at(url: str, changed_from: datetime | None = None, **wanted: Any) -> list[dict[str, Any]]:
    """The deliveries, read without Spark."""
    chosen = Wanted(**wanted)
    with campaign_tables(url, "here") as opened:
        parts = opened.plan("deliveries", chosen, 2, changed_from=changed_from)
        batches = [
            each for part in parts for each in opened.read("deliveries", part, chosen, changed_from=changed_from)
        ]
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["id"])


def test_behind_a_pooler_the_same_rows_are_read(tables: Tables) -> None:
    direct = rows_at(tables.url)

    assert len(direct) == len({row["id"] for row in direct}) == EVERYTHING
    assert rows_at(f"{tables.url}&pgbouncer=true") == direct


def test_deliveries_can_be_chosen_by_their_times(tables: Tables) -> None:
    def chosen(**wanted: Any) -> tuple[set[str], bool]:
        """The ids of FIRST that are read, and whether messages of the cancelled campaign are."""
        ids = {row["id"] for row in rows_at(tables.url, **wanted)}
        waiting = len({one for one in ids if one.startswith("m")})
        assert waiting in (0, MANY)
        return {one.id for one in FIRST} & ids, waiting > 0

    early, late = {"a0", "a1", "a2", "a3", "a4", "a5"}, {"a6", "a7"}
    assert chosen(finished_from=at(50)) == (late, True)
    assert chosen(finished_before=at(50)) == (early, True)
    assert chosen(changed_from=at(50)) == (late, False)
    assert chosen(changed_from=at(-50)) == (early | late, True)
    assert chosen(created_from=at(-30)) == (set(), True)
    assert chosen(created_before=at(-30)) == (early | late, False)


def test_a_database_without_the_tables_is_refused(jobwire_postgres: Server) -> None:
    joint = "&" if "?" in jobwire_postgres.url else "?"
    with ExitStack() as stack, pytest.raises(StoreRefused, match="no campaign tables in schema 'nowhere': jobwire"):
        find_sources(stack, [f"{jobwire_postgres.url}{joint}schema=nowhere"])


def test_an_ingest_reads_what_may_have_changed_since_the_last_one(history: History) -> None:
    assert all(one.good for one in history.ingests), history.ingests
    changed = len(LATER) + 2  # z1, whose campaign is missing, and z2: infinity is later than any time
    assert [one.sources[0].jobs for one in history.ingests] == [EVERYTHING, changed]
    assert [one.rows_in for one in history.builds] == [EVERYTHING, changed, 0]


def test_silver_has_each_delivery_once_as_it_was_last_seen(history: History) -> None:
    rows = read_table(history.lake, "silver/deliveries").to_pylist()
    settled = {row["id"]: (row["status"], row["attempts"]) for row in rows if row["status"] in ("SENT", "FAILED")}

    assert len(rows) == len({row["id"] for row in rows}) == MANY + len(FIRST) + len(LATER) + 1
    assert settled == {one.id: (one.status, one.attempts) for one in (*FIRST, *LATER)}
    [bad] = read_table(history.lake, "quarantine_campaigns").to_pylist()
    assert (bad["source"], bad["id"], bad["reason"]) == ("deliveries", "z2", "sent_at is infinity, not a date")


def expected(moment: Callable[[datetime], date]) -> dict[tuple[str, date], dict[str, Any]]:
    """The figures of each campaign in each hour or day, counted from the rows."""
    found: dict[tuple[str, date], list[Sent]] = {}
    for one in (*FIRST, *LATER):
        found.setdefault((one.campaign, moment(one.moment)), []).append(one)
    return {
        key: {
            "sent": sum(one.status == "SENT" for one in rows),
            "failed": sum(one.status == "FAILED" for one in rows),
            "attempts": sum(one.attempts for one in rows),
            "retries": sum(one.attempts - 1 for one in rows),
            "delivery_rate": RATES[key[0]],
            "campaign": f"the {key[0]}",
            **busiest(rows),
        }
        for key, rows in found.items()
    }


def busiest(rows: list[Sent]) -> dict[str, Any]:
    minutes = Counter(one.moment.replace(second=0, microsecond=0) for one in rows if one.status == "SENT")
    [(minute, count)] = minutes.most_common(1) or [(None, 0)]
    return {"busiest_minute": minute, "busiest_sent": count}


def whole_hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


@pytest.mark.parametrize(
    ("table", "column", "moment"), [("campaign_daily", "day", datetime.date), ("campaign_hourly", "hour", whole_hour)]
)
def test_campaigns_are_counted_by_day_and_by_hour(history: History, table: str, column: str, moment: Any) -> None:
    wanted = expected(moment)

    rows = {(row["campaign_id"], row[column]): row for row in history.gold(table)}
    assert len(rows) == len(history.gold(table))
    assert {key: {name: row[name] for name in wanted[key]} for key, row in rows.items()} == wanted


def test_failures_of_a_day_are_counted_by_reason(history: History) -> None:
    wanted: dict[tuple[str, date], Counter[str]] = {}
    for one in (*FIRST, *LATER):
        causes = wanted.setdefault((one.campaign, one.moment.date()), Counter())
        if one.error is not None:
            causes[one.reason or CLASSES[one.error]] += 1

    rows = history.gold("campaign_daily")
    assert {(row["campaign_id"], row["day"]): json.loads(row["failures"]) for row in rows} == wanted


def test_a_channel_is_silent_from_its_first_failure_after_the_last_success(history: History) -> None:
    rows = {row["channel_id"]: row for row in history.gold("channel_health")}

    assert {name: (row["active"], row["consecutive_errors"]) for name, row in rows.items()} == HEALTH
    # What a TEST campaign sent to delta has not reached it.
    assert history.silent == [{"delta": at(3), "bravo": at(4)}, {"delta": at(3), "c1": NOW}]
    delta, quiet, bravo = rows["delta"], rows["quiet"], rows["bravo"]
    assert (delta["deliveries"], delta["failures"], delta["last_success"]) == (2, 2, None)
    assert (delta["last_failure"], delta["last_reason"]) == (at(70), "CHAT_WRITE_FORBIDDEN")
    assert (quiet["deliveries"], quiet["failures"], quiet["channel"]) == (0, 0, "@quietxx")
    assert (bravo["deliveries"], bravo["failures"], bravo["last_success"]) == (2, 1, NOW)
