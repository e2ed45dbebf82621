"""What an operator does to a queue and to the jobs in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from jobwire import codec
from jobwire import options as checks
from jobwire.backend import Acted, Backend, Capabilities
from jobwire.errors import InvalidOption, JobNotFound, WrongState
from jobwire.facets import (
    Bulk,
    Edits,
    EventControl,
    Flows,
    PriorityCounts,
    QueueLimits,
    RetriesAnew,
    Routing,
    UniqueOwners,
)
from jobwire.model import Children, Job, Limits, State
from jobwire.options import DEFAULT_SIZE_LIMIT, Seconds, aware, seconds, text, whole, yes_or_no

_STEP = 1000
"""Jobs that one call moves, so that the store is never held up for long."""


class Operations:
    """The operator's side of a queue; `Queue` has all of it."""

    def __init__(self, name: str, backend: Backend, size_limit: int | None = DEFAULT_SIZE_LIMIT) -> None:
        self.name = name
        self._backend = backend
        self._size_limit = size_limit

    async def _reach(self) -> Backend:
        """The backend, ready to be called."""
        return self._backend

    @property
    def capabilities(self) -> Capabilities:
        """What this queue's protocol can do."""
        return self._backend.capabilities

    # --- one job ----------------------------------------------------------------------------------------------------

    async def retry(self, job_id: str, *, reset_attempts: bool = False) -> None:
        """Run a finished job again. The attempts it made stay charged, unless they are reset."""
        wanted = [checks.job_id(job_id)]
        if yes_or_no("reset_attempts", reset_attempts):
            self.capabilities.require("retry_anew", "retries that reset attempts")
            acted = await cast(RetriesAnew, await self._reach()).retry_anew(self.name, wanted)
        else:
            acted = await (await self._reach()).retry(self.name, wanted)
        self._expect(job_id, acted, "retried: it has not failed or completed")

    async def promote(self, job_id: str) -> None:
        """Make a delayed job ready now."""
        self.capabilities.require("promote", "promotion of delayed jobs")
        wanted = [checks.job_id(job_id)]
        self._expect(job_id, await (await self._reach()).promote(self.name, wanted), "promoted: it is not delayed")

    async def cancel(self, job_id: str) -> None:
        """Keep a job from being run; it stays readable as cancelled."""
        self.capabilities.require("cancel", "cancelled state")
        wanted = [checks.job_id(job_id)]
        self._expect(job_id, await (await self._reach()).cancel(self.name, wanted), "cancelled: it is not waiting")

    async def remove(self, job_id: str, *, children: bool = True) -> None:
        """Delete the job and all that belongs to it, its children among that unless told otherwise."""
        wanted = [checks.job_id(job_id)]
        if yes_or_no("children", children):
            acted = await (await self._reach()).remove(self.name, wanted)
        else:
            self.capabilities.require("flows", "children of jobs")
            acted = await cast(Flows, await self._reach()).remove_alone(self.name, wanted)
        self._expect(job_id, acted, "removed: its schedule needs it")

    async def update_data(self, job_id: str, data: Any) -> None:
        """Replace the data of a job. One that is running has read its data already."""
        wanted, encoded = checks.job_id(job_id), codec.dumps(data)
        if self._size_limit is not None:
            codec.check_size(len(encoded), self._size_limit)
        edits = await self._edits("data", "changes to a job's data")
        self._expect(job_id, [await edits.update_data(self.name, wanted, encoded)], "changed")

    async def change_priority(self, job_id: str, priority: int, *, front: bool = False) -> None:
        """Give a job another priority: to the end of those that have it, or to their front."""
        wanted = checks.job_id(job_id)
        asked = whole("priority", priority, minimum=-(2**31)), yes_or_no("front", front)
        edits = await self._edits("priority", "changes to a job's priority")
        self._expect(job_id, [await edits.change_priority(self.name, wanted, *asked)], "given a priority")

    async def change_delay(self, job_id: str, delay: Seconds) -> None:
        """Have a delayed job come due that long from now."""
        wanted, wait = checks.job_id(job_id), seconds("delay", delay)
        edits = await self._edits("delay", "changes to a job's delay")
        acted = await edits.change_delay(self.name, wanted, wait)
        self._expect(job_id, [acted], "given a delay: it is not delayed")

    async def clear_logs(self, job_id: str, *, keep: int = 0) -> None:
        """Delete what handlers have logged for the job, but for the last `keep` lines."""
        wanted, kept = checks.job_id(job_id), whole("keep", keep, minimum=0)
        edits = await self._edits("logs", "clearing of logs")
        self._expect(job_id, [await edits.clear_logs(self.name, wanted, kept)], "cleared")

    async def update_progress(self, job_id: str, value: Any) -> None:
        """Publish how far a job is, from outside its handler: any JSON value, by custom a number from 0 to 100."""
        self.capabilities.require("progress", "progress")
        wanted, encoded = checks.job_id(job_id), codec.dumps(value, field="progress")
        acted = await (await self._reach()).update_progress(self.name, wanted, encoded)
        self._expect(job_id, [acted], "given a progress")

    async def log(self, job_id: str, line: str, *, keep: int = 0) -> None:
        """Append a line to a job's log, from outside its handler, keeping the last `keep` lines (0: all)."""
        self.capabilities.require("logs", "job logs")
        wanted, kept = checks.job_id(job_id), whole("keep", keep, minimum=0)
        acted = await (await self._reach()).log(self.name, wanted, str(line), kept)
        self._expect(job_id, [acted], "logged for")

    async def children(self, job_id: str) -> Children:
        """What has become of the job's children so far."""
        self.capabilities.require("flows", "children of jobs")
        wanted = checks.job_id(job_id)
        return await cast(Flows, await self._reach()).children(self.name, wanted)

    async def _edits(self, what: str, words: str) -> Edits:
        self.capabilities.require("edits", words, one=what)
        return cast(Edits, await self._reach())

    def _expect(self, job_id: str, acted: Sequence[Acted], refusal: str) -> None:
        match acted[0]:
            case Acted.DONE:
                return
            case Acted.NOT_FOUND:
                raise JobNotFound(self.name, job_id)
            case Acted.LOCKED:
                raise WrongState(f"job {job_id!r} can't be changed: a worker is running it")
            case Acted.WRONG_STATE:
                raise WrongState(f"job {job_id!r} can't be {refusal}")

    # --- many jobs --------------------------------------------------------------------------------------------------

    async def retry_all(self, state: State | str = State.FAILED, *, before: datetime | None = None) -> int:
        """Run again all jobs that had failed (or completed) before the moment, or when the call was made. Returns how
        many there were."""
        self.capabilities.require("bulk", "retry of all jobs")
        wanted, moved, bulk = state_of(state), 0, cast(Bulk, self._backend)
        if wanted not in (State.FAILED, State.COMPLETED):
            raise InvalidOption("state", state, "must be failed or completed")
        bulk = cast(Bulk, await self._reach())
        latest = await bulk.now() if before is None else aware("before", before).timestamp()
        while step := await bulk.retry_all(self.name, wanted, latest, _STEP):
            moved += step
        return moved

    async def promote_all(self) -> int:
        """Make all delayed jobs ready now; how many."""
        self.capabilities.require("bulk", "promotion of all jobs")
        moved, backend = 0, cast(Bulk, await self._reach())
        while step := await backend.promote_all(self.name, _STEP):
            moved += step
        return moved

    async def counts_by_priority(self, priorities: Iterable[int]) -> Mapping[int, int]:
        """How many jobs of each of these priorities wait; 0 stands for those without one."""
        self.capabilities.require("priority_counts", "counts per priority")
        wanted = [whole("priorities", priority, minimum=0) for priority in priorities]
        return await cast(PriorityCounts, await self._reach()).counts_by_priority(self.name, wanted)

    async def drain(self, *, delayed: bool = False) -> None:
        """Delete the jobs that wait, and the delayed ones if asked. Running and finished jobs stay."""
        wanted = yes_or_no("delayed", delayed)
        await (await self._reach()).drain(self.name, wanted)

    async def clean(
        self, state: State | str = State.COMPLETED, *, older_than: Seconds = 0, limit: int = 0
    ) -> Sequence[str]:
        """Delete up to `limit` (0: all) jobs that are in the state for longer than that; returns their ids."""
        asked = state_of(state), seconds("older_than", older_than), whole("limit", limit, minimum=0)
        return await (await self._reach()).clean(self.name, *asked)

    # --- the queue --------------------------------------------------------------------------------------------------

    async def pause(self) -> None:
        """Stop all workers of the queue from claiming; running jobs go on."""
        self.capabilities.require("pause", "pause")
        await (await self._reach()).pause(self.name)

    async def resume(self) -> None:
        self.capabilities.require("pause", "pause")
        await (await self._reach()).resume(self.name)

    async def paused(self) -> bool:
        self.capabilities.require("pause", "pause")
        return await (await self._reach()).paused(self.name)

    async def obliterate(self, *, force: bool = False) -> None:
        """Delete the queue and everything in it. WrongState if jobs are running, unless forced."""
        forced = yes_or_no("force", force)
        await (await self._reach()).obliterate(self.name, forced)

    async def limits(self) -> Limits:
        """What holds back all workers of the queue."""
        if not self.capabilities.global_concurrency:
            self.capabilities.require("global_rate", "limits of the whole queue")
        return await cast(QueueLimits, await self._reach()).limits(self.name)

    async def limit_rate(self, jobs: int | None, per: Seconds = 1.0) -> None:
        """Let all workers together start at most `jobs` in that many seconds; None lifts the limit."""
        self.capabilities.require("global_rate", "rate limit of the whole queue")
        rate = None if jobs is None else (whole("jobs", jobs, minimum=1), seconds("per", per, minimum=0.001))
        await cast(QueueLimits, await self._reach()).limit_rate(self.name, rate)

    async def limit_concurrency(self, jobs: int | None) -> None:
        """Let all workers together run at most `jobs` at a time; None lifts the limit."""
        self.capabilities.require("global_concurrency", "concurrency limit of the whole queue")
        limit = None if jobs is None else whole("jobs", jobs, minimum=1)
        await cast(QueueLimits, await self._reach()).limit_concurrency(self.name, limit)

    async def throttle(self, delay: Seconds) -> None:
        """Have workers that are rate limited start nothing for that long; 0 ends it, and the current window too."""
        self.capabilities.require("throttle", "throttling of a queue")
        wait = seconds("delay", delay)
        await cast(QueueLimits, await self._reach()).throttle(self.name, wait)

    # --- events and unique keys -------------------------------------------------------------------------------------

    async def publish(self, event: str, fields: Mapping[str, str] | None = None) -> str:
        """Put an event of one's own into the queue's stream; its id. Fields are texts."""
        self.capabilities.require("custom_events", "events of one's own")
        given = dict(fields or {})
        for name, value in given.items():
            if not isinstance(value, str) or name == "event":  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
                raise InvalidOption(f"fields.{name}", value, "must be a text under a name other than 'event'")
        kind = text("event", event)
        return await cast(EventControl, await self._reach()).publish(self.name, kind, given)

    async def trim_events(self, keep: int) -> int:
        """Delete all but about the last `keep` events of the stream; how many went."""
        self.capabilities.require("custom_events", "control of the event stream")
        kept = whole("keep", keep, minimum=0)
        return await cast(EventControl, await self._reach()).trim_events(self.name, kept)

    async def _limit_events(self, keep: int) -> None:
        await cast(EventControl, self._backend).limit_events(self.name, keep)

    async def unique_owner(self, key: str) -> str | None:
        """The id of the job that holds the unique key, or None."""
        self.capabilities.require("unique", "owners of unique keys", one="owner")
        wanted = text("key", key)
        return await cast(UniqueOwners, await self._reach()).unique_owner(self.name, wanted)

    async def release_unique(self, key: str) -> bool:
        """Free a unique key before its job does; False if nobody held it."""
        self.capabilities.require("unique", "owners of unique keys", one="owner")
        wanted = text("key", key)
        return await cast(UniqueOwners, await self._reach()).release_unique(self.name, wanted)

    async def unroutable(self, *, limit: int = 100) -> Sequence[Job]:
        """Waiting jobs that no live worker can take: their server is down, or nobody has what they ask for."""
        self.capabilities.require("routing", "routing by target")
        most = whole("limit", limit, minimum=1)
        return await cast(Routing, await self._reach()).unroutable(self.name, most)


def state_of(value: State | str) -> State:
    """The state meant by its name."""
    try:
        return State(value)
    except ValueError:
        raise InvalidOption("state", value, f"must be one of {', '.join(State)}") from None
