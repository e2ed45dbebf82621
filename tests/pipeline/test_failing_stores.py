"""Stores that are down, or go down in the middle of an ingest, beside others that are not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest

from jobwire import NewJob, embedded
from jobwire.cli import main
from jobwire.errors import StoreUnavailable
from jobwire.pipeline.history.ingest import Source, find_sources, ingest
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.stores.address import store_name
from jobwire.sync import Queue

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
Place = Callable[[str], str]
GONE = "bullmq+redis://app:hunter2@127.0.0.1:1"
"""Nothing listens on this port."""


def add(url: str, count: int) -> None:
    with Queue("mail", url) as opened:
        opened.add_many([NewJob({"n": number}) for number in range(count)])


def no_session() -> NoReturn:
    raise AssertionError("a store that is down needs no Spark")


@pytest.mark.usefixtures("spark")
def test_a_run_reports_the_store_that_is_down_and_builds_what_the_others_have(
    place: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, lake = place("bullmq"), str(tmp_path / "lake")
    add(url, 3)
    code = main(["pipeline", "run", GONE, url, "--lake", lake, "--out", str(tmp_path / "report")])
    out, err = capfd.readouterr()
    assert code == 1
    assert f"{store_name(GONE)}:" in "".join(out.split()), out
    assert "hunter2" not in out + err
    assert read_table(lake, "silver/jobs").num_rows == 3
    ingested, built = read_runs(lake)[:2]
    assert (ingested["outcome"], built["outcome"], ingested["rows_in"]) == ("failed", "ok", 9)
    assert "127.0.0.1:1" in ingested["error"]
    assert "hunter2" not in ingested["error"]


def test_a_named_queue_is_read_from_the_store_that_answers(place: Place, lake: str, spark: Any) -> None:
    url = place("bullmq")
    add(url, 2)
    with ExitStack() as stack:
        result = ingest(spark, Lake(lake), find_sources(stack, [GONE, url], ["mail"]))
    down, up = result.sources
    assert ("127.0.0.1:1" in (down.error or ""), up.error, up.jobs) == (True, None, 2)


def test_a_store_that_is_down_fails_without_spark(lake: str) -> None:
    result = ingest(no_session, Lake(lake), [Source(GONE, store_name(GONE))])
    assert (result.good, result.sources[0].unchanged) == (False, False)
    with ExitStack() as stack, pytest.raises(StoreUnavailable):
        find_sources(stack, [GONE])


def test_a_store_that_dies_in_the_middle_loses_nothing_and_stops_no_other(
    place: Place, lake: str, spark: Any, tmp_path: Path
) -> None:
    url, tables = place("pgboss"), Lake(lake)
    add(url, 4)

    class Dying(Source):
        """Its server ends when its events have been read and its jobs have not."""

        def take_snapshot(self, spark: Any, lake: Lake, run: str) -> int:
            server.close()
            return super().take_snapshot(spark, lake, run)

    with embedded.valkey(tmp_path / "valkey") as server:
        weak = f"bullmq+{server.url}"
        add(weak, 5)
        result = ingest(spark, tables, [Dying(weak, store_name(weak)), Source(url, store_name(url))])
        died, well = result.sources
    assert (died.events, died.jobs, result.good) == (10, 0, False)
    assert died.error is not None
    assert (well.jobs, well.error) == (4, None)
    assert tables.bronze_events(spark).where(f"store = '{store_name(weak)}'").count() == 10

    with embedded.valkey(tmp_path / "valkey") as server:
        back = f"bullmq+{server.url}"
        again = ingest(spark, tables, [Source(back, store_name(weak))])
    [source] = again.sources
    assert (source.events, source.jobs, source.error) == (0, 5, None)
