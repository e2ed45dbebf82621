"""What an operator does to a queue and to the jobs in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from jobwire import codec
from jobwire import options as checks
from jobwire.boundary import (
    Acted,
    Backend,
    Bulk,
    Capabilities,
    Edits,
    EventControl,
    Feature,
    Flows,
    Pause,
    QueueLimits,
    UniqueOwners,
)
from jobwire.errors import InvalidOption, JobNotFound, WrongState
from jobwire.model import Children, Job, Limits, State
from jobwire.options import DEFAULT_SIZE_LIMIT, Seconds, aware, seconds, text, whole, yes_or_no
from jobwire.rate import Rate, rate_of

Part = TypeVar("Part")

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

    async def _reach_part(self, choose: Callable[[Backend], Part | None], feature: Feature) -> Part:
        """Returns a part of the backend, ready to be called. What the protocol lacks is refused before it is opened."""
        self.capabilities.require(feature)
        return self.capabilities.part(choose(await self._reach()), feature)

    @property
    def capabilities(self) -> Capabilities:
        """What this queue's protocol can do."""
        return self._backend.capabilities

    # --- one job ----------------------------------------------------------------------------------------------------

    async def retry(self, job_id: str, *, reset_attempts: bool = False) -> None:
        """Run a finished job again. The attempts it made stay charged, unless they are reset."""
        wanted = [checks.job_id(job_id)]
        if yes_or_no("reset_attempts", reset_attempts):
            acted = await (await self._edits()).retry_anew(self.name, wanted)
        else:
            acted = await (await self._reach()).retry(self.name, wanted)
        self._expect(job_id, acted, "retried: it has not failed or completed")

    async def promote(self, job_id: str) -> None:
        """Make a delayed job ready now."""
        wanted = [checks.job_id(job_id)]
        self._expect(job_id, await (await self._reach()).promote(self.name, wanted), "promoted: it is not delayed")

    async def cancel(self, job_id: str) -> None:
        """Keep a job from being run; it stays readable as cancelled."""
        wanted = [checks.job_id(job_id)]
        cancels = await self._reach_part(lambda backend: backend.cancels, Feature.CANCEL)
        self._expect(job_id, await cancels.cancel(self.name, wanted), "cancelled: it is not waiting")

    async def remove(self, job_id: str, *, children: bool = True) -> None:
        """Delete the job and all that belongs to it, its children among that unless told otherwise."""
        wanted = [checks.job_id(job_id)]
        if yes_or_no("children", children):
            acted = await (await self._reach()).remove(self.name, wanted)
        else:
            acted = await (await self._flows()).remove_alone(self.name, wanted)
        self._expect(job_id, acted, "removed: its schedule needs it")

    async def update_data(self, job_id: str, data: Any) -> None:
        """Replace the data of a job. One that is running has read its data already."""
        wanted, encoded = checks.job_id(job_id), codec.dumps(data)
        if self._size_limit is not None:
            codec.check_size(len(encoded), self._size_limit)
        edits = await self._edits()
        self._expect(job_id, [await edits.update_data(self.name, wanted, encoded)], "changed")

    async def change_priority(self, job_id: str, priority: int, *, front: bool = False) -> None:
        """Give a job another priority: to the end of those that have it, or to their front."""
        wanted = checks.job_id(job_id)
        asked = whole("priority", priority, minimum=-(2**31)), yes_or_no("front", front)
        edits = await self._edits()
        self._expect(job_id, [await edits.change_priority(self.name, wanted, *asked)], "given a priority")

    async def change_delay(self, job_id: str, delay: Seconds) -> None:
        """Have a delayed job come due that long from now."""
        wanted, wait = checks.job_id(job_id), seconds("delay", delay)
        edits = await self._edits()
        acted = await edits.change_delay(self.name, wanted, wait)
        self._expect(job_id, [acted], "given a delay: it is not delayed")

    async def clear_logs(self, job_id: str, *, keep: int = 0) -> None:
        """Delete what handlers have logged for the job, but for the last `keep` lines."""
        wanted, kept = checks.job_id(job_id), whole("keep", keep, minimum=0)
        edits = await self._edits()
        self._expect(job_id, [await edits.clear_logs(self.name, wanted, kept)], "cleared")

    async def update_progress(self, job_id: str, value: Any) -> None:
        """Publish how far a job is, from outside its handler: any JSON value, by custom a number from 0 to 100."""
        wanted, encoded = checks.job_id(job_id), codec.dumps(value, field="progress")
        progress = await self._reach_part(lambda backend: backend.progress, Feature.PROGRESS)
        self._expect(job_id, [await progress.update_progress(self.name, wanted, encoded)], "given a progress")

    async def log(self, job_id: str, line: str, *, keep: int = 0) -> None:
        """Append a line to a job's log, from outside its handler, keeping the last `keep` lines (0: all)."""
        wanted, kept = checks.job_id(job_id), whole("keep", keep, minimum=0)
        logs = await self._reach_part(lambda backend: backend.logs, Feature.LOGS)
        self._expect(job_id, [await logs.log(self.name, wanted, str(line), kept)], "logged for")

    async def children(self, job_id: str) -> Children:
        """What has become of the job's children so far."""
        wanted = checks.job_id(job_id)
        return await (await self._flows()).children(self.name, wanted)

    async def _edits(self) -> Edits:
        return await self._reach_part(lambda backend: backend.edits, Feature.EDITS)

    async def _flows(self) -> Flows:
        return await self._reach_part(lambda backend: backend.flows, Feature.FLOWS)

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
        wanted, moved = state_of(state), 0
        if wanted not in (State.FAILED, State.COMPLETED):
            raise InvalidOption("state", state, "must be failed or completed")
        bulk = await self._bulk()
        latest = await bulk.now() if before is None else aware("before", before).timestamp()
        while step := await bulk.retry_all(self.name, wanted, latest, _STEP):
            moved += step
        return moved

    async def promote_all(self) -> int:
        """Make all delayed jobs ready now; how many."""
        moved, bulk = 0, await self._bulk()
        while step := await bulk.promote_all(self.name, _STEP):
            moved += step
        return moved

    async def counts_by_priority(self, priorities: Iterable[int]) -> Mapping[int, int]:
        """How many jobs of each of these priorities wait; 0 stands for those without one."""
        wanted = [whole("priorities", priority, minimum=0) for priority in priorities]
        return await (await self._bulk()).counts_by_priority(self.name, wanted)

    async def _bulk(self) -> Bulk:
        return await self._reach_part(lambda backend: backend.bulk, Feature.BULK)

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
        await (await self._pause()).pause(self.name)

    async def resume(self) -> None:
        await (await self._pause()).resume(self.name)

    async def paused(self) -> bool:
        return await (await self._pause()).paused(self.name)

    async def _pause(self) -> Pause:
        return await self._reach_part(lambda backend: backend.pause, Feature.PAUSE)

    async def obliterate(self, *, force: bool = False) -> None:
        """Delete the queue and everything in it. WrongState if jobs are running, unless forced."""
        forced = yes_or_no("force", force)
        await (await self._reach()).obliterate(self.name, forced)

    async def limits(self) -> Limits:
        """What holds back all workers of the queue."""
        return await (await self._limits()).limits(self.name)

    async def limit_rate(self, rate: Rate | None) -> None:
        """Limits how many jobs all workers together start, e.g. Rate(10, per=60). None removes the limit."""
        limit = rate_of("rate", rate)
        await (await self._limits()).limit_rate(self.name, limit)

    async def limit_concurrency(self, jobs: int | None) -> None:
        """Let all workers together run at most `jobs` at a time; None lifts the limit."""
        limit = None if jobs is None else whole("jobs", jobs, minimum=1)
        await (await self._limits()).limit_concurrency(self.name, limit)

    async def throttle(self, delay: Seconds) -> None:
        """Have workers that are rate limited start nothing for that long; 0 ends it, and the current window too."""
        wait = seconds("delay", delay)
        await (await self._limits()).throttle(self.name, wait)

    async def _limits(self) -> QueueLimits:
        return await self._reach_part(lambda backend: backend.limits, Feature.LIMITS)

    # --- events and unique keys -------------------------------------------------------------------------------------

    async def publish(self, event: str, fields: Mapping[str, str] | None = None) -> str:
        """Put an event of one's own into the queue's stream; its id. Fields are texts."""
        given = dict(fields or {})
        for name, value in given.items():
            if not isinstance(value, str) or name == "event":  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
                raise InvalidOption(f"fields.{name}", value, "must be a text under a name other than 'event'")
        kind = text("event", event)
        return await (await self._event_control()).publish(self.name, kind, given)

    async def trim_events(self, keep: int) -> int:
        """Delete all but about the last `keep` events of the stream; how many went."""
        kept = whole("keep", keep, minimum=0)
        return await (await self._event_control()).trim_events(self.name, kept)

    async def _event_control(self) -> EventControl:
        return await self._reach_part(lambda backend: backend.event_control, Feature.EVENT_CONTROL)

    async def unique_owner(self, key: str) -> str | None:
        """The id of the job that holds the unique key, or None."""
        wanted = text("key", key)
        return await (await self._unique_owners()).unique_owner(self.name, wanted)

    async def release_unique(self, key: str) -> bool:
        """Free a unique key before its job does; False if nobody held it."""
        wanted = text("key", key)
        return await (await self._unique_owners()).release_unique(self.name, wanted)

    async def _unique_owners(self) -> UniqueOwners:
        return await self._reach_part(lambda backend: backend.unique_owners, Feature.UNIQUE_OWNERS)

    async def unroutable(self, *, limit: int = 100) -> Sequence[Job]:
        """Waiting jobs that no live worker can take: their server is down, or nobody has what they ask for."""
        most = whole("limit", limit, minimum=1)
        routing = await self._reach_part(lambda backend: backend.routing, Feature.ROUTING)
        return await routing.unroutable(self.name, most)


def state_of(value: State | str) -> State:
    """The state meant by its name."""
    try:
        return State(value)
    except ValueError:
        raise InvalidOption("state", value, f"must be one of {', '.join(State)}") from None
