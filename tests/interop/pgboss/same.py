"""Comparing what two queues hold."""

from __future__ import annotations

from typing import Any

TIMES = ("start_after", "created_on", "started_on", "completed_on", "keep_until", "heartbeat_on", "source_created_on")
SPANS = [f"round(extract(epoch FROM {time} - created_on))::int AS {time}" for time in TIMES]


async def jobs(rows: Any, queue: str) -> list[dict[str, Any]]:
    """Jobs of a queue as they are stored, ids left out, times as whole seconds from the moment of creation."""
    found = await rows(
        f"SELECT to_jsonb(j) AS job, {', '.join(SPANS)}"
        + " FROM job j WHERE name = %s ORDER BY state, priority DESC, data::text, singleton_on, created_on",
        queue,
    )
    kept = []
    for row in found:
        job = {**row.pop("job"), **row}
        for name in ("id", "name", "source_id", "source_root_id", "source_name", "dead_letter"):
            job[name] = job.get(name) is not None
        kept.append(job)
    return kept


def _alike(key: str, mine: Any, its: Any, age: float) -> bool:
    """Equal; spans from one call to another up to the time that all calls took, and a second of rounding."""
    if key in TIMES and mine is not None and its is not None:
        return abs(mine - its) <= age + 1
    return mine == its


async def assert_same(rows: Any, ours: str = "ours", theirs: str = "node") -> None:
    """Both queues hold the same; if not, only what differs is shown."""
    own, other = await jobs(rows, ours), await jobs(rows, theirs)
    oldest = "SELECT extract(epoch FROM now() - min(created_on))::float AS age FROM job WHERE name = ANY (%s)"
    age = (await rows(oldest, [ours, theirs]))[0]["age"] or 0.0
    assert len(own) == len(other), [[(job["state"], job["data"]) for job in found] for found in (own, other)]
    differences = [
        {key: (mine[key], its[key]) for key in its if not _alike(key, mine[key], its[key], age)}
        for mine, its in zip(own, other, strict=True)
    ]
    assert not any(differences), differences
