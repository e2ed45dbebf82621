"""The pipeline beside Node: what Node's producers and workers do is taken in and counted right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from awaiting import eventually
from jobwire.pipeline.history.build import build
from jobwire.pipeline.history.ingest import Source, ingest
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.stores.address import store_name

from ..peer import NodeJob, NodeQueue

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
BRIEF = {"lockDuration": 600, "stalledInterval": 200}


async def test_what_node_adds_works_fails_and_loses_is_counted(
    *,
    spark: Any,
    node: NodeQueue,
    doomed: NodeQueue,
    url: str,
    tmp_path: Path,
    finished_in_node: Callable[[str], Awaitable[NodeJob]],
) -> None:
    lost = await node.add({"n": 0}, name="precious")
    async with doomed.work("hang", **BRIEF):
        await eventually(lambda: _active(node, lost))
        doomed.peer.kill()
        async with node.work("echo", label="healthy", **BRIEF):
            await finished_in_node(lost)
    good = await node.add_bulk([{"name": "letter", "data": {"n": number}} for number in range(20)])
    async with node.work("echo", label="healthy"):
        for job_id in good:
            await finished_in_node(job_id)
    bad = await node.add({"n": 99}, name="letter", attempts=3)
    async with node.work("fail", settings={"times": 99}):
        await finished_in_node(bad)
    await node.add({"n": 100}, name="letter", delay=3_600_000)

    lake = Lake(str(tmp_path / "lake"))
    taken = ingest(spark, lake, [Source(url, store_name(url))])
    assert taken.good, taken
    assert taken.sources[0].jobs == 23
    build(spark, lake)

    attempts = read_table(lake.root, "silver/attempts").to_pandas()
    outcomes = attempts.groupby(["name", "outcome"]).size().to_dict()
    assert outcomes == {
        ("precious", "stalled"): 1,
        ("precious", "completed"): 1,
        ("letter", "completed"): 20,
        ("letter", "failed"): 3,
    }
    assert list(attempts[attempts.job_id == bad].sort_values("attempt")["attempt"]) == [1, 2, 3]
    assert (attempts["wait_ms"] >= 0).all(), attempts.to_string()

    jobs = read_table(lake.root, "silver/jobs").to_pandas()
    assert jobs.groupby("state").size().to_dict() == {"completed": 21, "failed": 1, "delayed": 1}
    hours = read_table(lake.root, "gold/throughput_hourly").to_pandas()
    assert (hours["added"].sum(), hours["completed"].sum(), hours["failed"].sum()) == (23, 21, 1)
    failures = read_table(lake.root, "gold/failures_daily").to_pandas()
    assert failures[failures.name == "letter"]["failures"].sum() == 3


async def _active(node: NodeQueue, job_id: str) -> bool:
    found = await node.get(job_id)
    return found is not None and found.state == "active"
