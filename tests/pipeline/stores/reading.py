"""What a store holds and tells, gathered from its slices."""

from __future__ import annotations

from typing import Any

from jobwire import ActiveJob, Job, Queue, State, Unrecoverable, urls
from jobwire.pipeline.lake.schemas import EVENTS, JOBS
from jobwire.pipeline.stores.boundary import Offset, QueueStore, Stamp, Wanted, open_store


def opened(url: str, queue: str) -> QueueStore:
    return open_store(urls.parse(url), queue, "the-store")


def jobs_in(store: QueueStore, wanted: Wanted | None = None, parts: int = 4) -> dict[str, dict[str, Any]]:
    """The rows of all slices by their ids, none of which may come twice."""
    wanted = wanted or Wanted()
    found: dict[str, dict[str, Any]] = {}
    for part in store.plan_jobs(wanted, parts):
        for batch in store.read_jobs(part, wanted):
            assert batch.schema == JOBS.arrow
            for row in batch.to_pylist():
                assert row["id"] not in found, row
                found[row["id"]] = row
    return found


async def everything(queue: Queue) -> dict[str, Job]:
    """The jobs of all states by their ids, as the backend reads them."""
    return {job.id: job for state in State async for job in queue.iter_jobs(state)}


async def mixed_outcomes(job: ActiveJob) -> Any:
    """A handler with results of all kinds, by the number `n` of the job."""
    if job.data["n"] % 7 == 0:
        await job.update_progress({"half": True})
    match job.data["n"] % 5:
        case 0:
            raise Unrecoverable("it's «broken»\n\tfor good")
        case 1:
            raise ValueError("once more")
        case 2:
            return {"sent": True, "to": ["ä", "b"]}
        case 3:
            return job.data["n"]


def sizes(store: QueueStore, parts: int) -> list[int]:
    """How many jobs each slice has."""
    everything = Wanted()
    planned = store.plan_jobs(everything, parts)
    return [sum(batch.num_rows for batch in store.read_jobs(part, everything)) for part in planned]


def events_between(store: QueueStore, start: Offset, end: Offset) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for part in store.plan_events(start, end):
        for batch in store.read_events(part):
            assert batch.schema == EVENTS.arrow
            told += batch.to_pylist()
    return told


def news(store: QueueStore, start: Offset, max_rows: int | None = None) -> tuple[list[dict[str, Any]], Offset]:
    """What one ingest reads, and where the next one begins."""
    end = store.latest_offset(start, max_rows)
    return ([] if end == start else events_between(store, start, end)), end


def kinds(told: list[dict[str, Any]], job_id: str) -> list[str]:
    """The kinds of a job's events in the order of their times, each event once."""
    events = {one["id"]: one for one in told if one["job_id"] == job_id}
    return [one["kind"] for one in sorted(events.values(), key=lambda one: one["at"])]


def stamp(row: dict[str, Any]) -> Stamp:
    return Stamp(row["id"], row["state"], row["fingerprint"])
