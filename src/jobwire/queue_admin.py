"""Operators' half of a queue: retrying, removing and editing jobs, pausing and limiting the queue, its workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from jobwire import checks, codec
from jobwire.acted import require_done
from jobwire.boundary import Acted, Bulk, Edits, EventControl, Feature, Flows, Pause, QueueLimits, UniqueOwners
from jobwire.checks import Seconds, aware, maybe_empty, seconds, text, whole, yes_or_no
from jobwire.errors import InvalidOption
from jobwire.model import Event, Job, Limits, State, WorkerInfo, state_of
from jobwire.queue_access import QueueAccess
from jobwire.rate import Rate, rate_of
from jobwire.spelling import methods_refuse_typos

_STEP = 1000
"""Jobs that one call moves, so that the store is never blocked for long."""


def _ids(job_ids: Iterable[str]) -> list[str]:
    return [checks.job_id(one) for one in checks.items("job_ids", job_ids, "ids")]


def missing_attribute(kind: str, name: str) -> AttributeError:
    """Returns the error for a name that a queue lacks. For a method of its admin it names the place."""
    if name.startswith("_") or not hasattr(QueueAdmin, name):
        return AttributeError(f"{kind!r} object has no attribute {name!r}")
    place = f"operators' methods are on queue.admin: queue.admin.{name}(...)"
    # Without `obj=None` Python appends the queue's most similar name: "Did you mean: 'logs'?"
    return AttributeError(f"{kind!r} object has no attribute {name!r}; {place}", name=name, obj=None)


@methods_refuse_typos("queue.admin")
class QueueAdmin:
    """Operators' half of a queue, `queue.admin`. It opens and closes with its queue."""

    def __init__(self, access: QueueAccess, size_limit: int | None) -> None:
        self._access = access
        self._queue = access.queue
        self._size_limit = size_limit

    def __repr__(self) -> str:
        return f"<QueueAdmin {self._queue!r} {self._access.connection.address.redacted}>"

    # --- one job ----------------------------------------------------------------------------------------------------

    async def retry(self, job_id: str, *, reset_attempts: bool = False) -> None:
        """Runs a finished job again. The attempts that it made stay charged, unless they are reset."""
        wanted = [checks.job_id(job_id)]
        if yes_or_no("reset_attempts", reset_attempts):
            [acted] = await (await self._edits()).retry_anew(self._queue, wanted)
        else:
            [acted] = await (await self._access.backend()).retry(self._queue, wanted)
        self._require_done(job_id, acted, "retried: it has not failed or completed")

    async def promote(self, job_id: str) -> None:
        """Makes a delayed job ready now."""
        wanted = [checks.job_id(job_id)]
        [acted] = await (await self._access.backend()).promote(self._queue, wanted)
        self._require_done(job_id, acted, "promoted: it is not delayed")

    async def remove(self, job_id: str, *, children: bool = True) -> None:
        """Deletes a job and all that belongs to it. `children=False` leaves its children in the store."""
        wanted = [checks.job_id(job_id)]
        if yes_or_no("children", children):
            [acted] = await (await self._access.backend()).remove(self._queue, wanted)
        else:
            [acted] = await (await self._flows()).remove_alone(self._queue, wanted)
        self._require_done(job_id, acted, "removed: its schedule needs it")

    async def update_data(self, job_id: str, data: Any) -> None:
        """Replaces the data of a job. One that is running has read its data already."""
        wanted, encoded = checks.job_id(job_id), codec.dumps(data)
        if self._size_limit is not None:
            codec.check_size(len(encoded), self._size_limit)
        edits = await self._edits()
        self._require_done(job_id, await edits.update_data(self._queue, wanted, encoded), "changed")

    async def change_priority(self, job_id: str, priority: int, *, front: bool = False) -> None:
        """Gives a job another priority and puts it behind the jobs that have the same one, or before them (`front`)."""
        wanted = checks.job_id(job_id)
        asked = whole("priority", priority, minimum=-(2**31)), yes_or_no("front", front)
        edits = await self._edits()
        self._require_done(job_id, await edits.change_priority(self._queue, wanted, *asked), "given a priority")

    async def change_delay(self, job_id: str, delay: Seconds) -> None:
        """Makes a delayed job due that long from now."""
        wanted, wait = checks.job_id(job_id), seconds("delay", delay)
        edits = await self._edits()
        acted = await edits.change_delay(self._queue, wanted, wait)
        self._require_done(job_id, acted, "given a delay: it is not delayed")

    async def clear_logs(self, job_id: str, *, keep: int = 0) -> None:
        """Deletes the log of a job except for its last `keep` lines."""
        wanted, kept = checks.job_id(job_id), whole("keep", keep, minimum=0)
        edits = await self._edits()
        self._require_done(job_id, await edits.clear_logs(self._queue, wanted, kept), "cleared")

    async def update_progress(self, job_id: str, value: Any) -> None:
        """Sets the progress of a job from outside its handler: any JSON value, usually a number from 0 to 100."""
        wanted, encoded = checks.job_id(job_id), codec.dumps(value, field="progress")
        progress = await self._access.part(lambda backend: backend.progress, Feature.PROGRESS)
        self._require_done(job_id, await progress.update_progress(self._queue, wanted, encoded), "given a progress")

    async def log(self, job_id: str, line: str, *, keep: int = 0) -> None:
        """Appends a line to the log of a job from outside its handler, and keeps the last `keep` lines (0: all)."""
        wanted, kept = checks.job_id(job_id), whole("keep", keep, minimum=0)
        written = maybe_empty("line", str(line))
        logs = await self._access.part(lambda backend: backend.logs, Feature.LOGS)
        self._require_done(job_id, await logs.log(self._queue, wanted, written, kept), "logged for")

    async def _edits(self) -> Edits:
        return await self._access.part(lambda backend: backend.edits, Feature.EDITS)

    async def _flows(self) -> Flows:
        return await self._access.part(lambda backend: backend.flows, Feature.FLOWS)

    def _require_done(self, job_id: str, acted: Acted, refusal: str) -> None:
        require_done(self._queue, job_id, acted, refusal)

    # --- many jobs --------------------------------------------------------------------------------------------------

    async def retry_many(self, job_ids: Iterable[str], *, reset_attempts: bool = False) -> Sequence[Acted]:
        """Runs finished jobs again. Returns the answer for each: DONE, NOT_FOUND, WRONG_STATE or LOCKED."""
        wanted = _ids(job_ids)
        if yes_or_no("reset_attempts", reset_attempts):
            return await (await self._edits()).retry_anew(self._queue, wanted)
        return await (await self._access.backend()).retry(self._queue, wanted)

    async def promote_many(self, job_ids: Iterable[str]) -> Sequence[Acted]:
        """Makes delayed jobs ready now. Returns the answer for each."""
        return await (await self._access.backend()).promote(self._queue, _ids(job_ids))

    async def remove_many(self, job_ids: Iterable[str]) -> Sequence[Acted]:
        """Deletes jobs and all that belongs to them. Returns the answer for each: LOCKED for one that runs."""
        return await (await self._access.backend()).remove(self._queue, _ids(job_ids))

    async def cancel_many(self, job_ids: Iterable[str]) -> Sequence[Acted]:
        """Keeps waiting jobs from being run, as `queue.cancel` does. Returns the answer for each."""
        cancels = await self._access.part(lambda backend: backend.cancels, Feature.CANCEL)
        return await cancels.cancel(self._queue, _ids(job_ids))

    async def retry_all(self, state: State | str = State.FAILED, *, before: datetime | None = None) -> int:
        """Runs all jobs again that failed (or completed) before the given moment, or else before this call.

        Returns how many there were."""
        wanted, moved = state_of(state), 0
        if wanted not in (State.FAILED, State.COMPLETED):
            raise InvalidOption("state", state, "must be failed or completed")
        bulk = await self._bulk()
        latest = await bulk.now() if before is None else aware("before", before).timestamp()
        while step := await bulk.retry_all(self._queue, wanted, latest, _STEP):
            moved += step
        return moved

    async def promote_all(self) -> int:
        """Makes all delayed jobs ready now. Returns how many there were."""
        moved, bulk = 0, await self._bulk()
        while step := await bulk.promote_all(self._queue, _STEP):
            moved += step
        return moved

    async def counts_by_priority(self, priorities: Iterable[int]) -> Mapping[int, int]:
        """Returns the number of waiting jobs of each of these priorities. 0 means those without one."""
        wanted = [whole("priorities", one, minimum=0) for one in checks.items("priorities", priorities, "integers")]
        return await (await self._bulk()).counts_by_priority(self._queue, wanted)

    async def _bulk(self) -> Bulk:
        return await self._access.part(lambda backend: backend.bulk, Feature.BULK)

    async def drain(self, *, delayed: bool = False) -> None:
        """Deletes the waiting jobs, and with `delayed=True` the delayed ones. Running and finished jobs stay."""
        wanted = yes_or_no("delayed", delayed)
        await (await self._access.backend()).drain(self._queue, wanted)

    async def clean(
        self, state: State | str = State.COMPLETED, *, older_than: Seconds = 0, limit: int = 0
    ) -> Sequence[str]:
        """Deletes up to `limit` (0: all) jobs that have been in the state for `older_than`. Returns their ids."""
        asked = state_of(state), seconds("older_than", older_than), whole("limit", limit, minimum=0)
        return await (await self._access.backend()).clean(self._queue, *asked)

    # --- the queue --------------------------------------------------------------------------------------------------

    async def pause(self) -> None:
        """Stops all workers of the queue from claiming jobs. Running jobs continue."""
        await (await self._pause()).pause(self._queue)

    async def resume(self) -> None:
        """Ends a pause. Does nothing if the queue is not paused."""
        await (await self._pause()).resume(self._queue)

    async def paused(self) -> bool:
        """Returns True if the queue is paused."""
        return await (await self._pause()).paused(self._queue)

    async def _pause(self) -> Pause:
        return await self._access.part(lambda backend: backend.pause, Feature.PAUSE)

    async def obliterate(self, *, force: bool = False) -> None:
        """Deletes the queue and everything in it. Raises WrongState if jobs are running, unless forced."""
        forced = yes_or_no("force", force)
        await (await self._access.backend()).obliterate(self._queue, forced)

    async def limits(self) -> Limits:
        """Returns the limits for all workers of the queue together."""
        return await (await self._limits()).limits(self._queue)

    async def limit_rate(self, rate: Rate | None) -> None:
        """Limits how many jobs all workers together start, e.g. Rate(10, per=60). None removes the limit."""
        limit = rate_of("rate", rate)
        await (await self._limits()).limit_rate(self._queue, limit)

    async def limit_concurrency(self, jobs: int | None) -> None:
        """Lets all workers together run at most `jobs` at a time. None removes the limit."""
        limit = None if jobs is None else whole("jobs", jobs, minimum=1)
        await (await self._limits()).limit_concurrency(self._queue, limit)

    async def throttle(self, delay: Seconds) -> None:
        """Stops workers with a rate limit from starting jobs for that long. 0 ends that, and the current window."""
        wait = seconds("delay", delay)
        await (await self._limits()).throttle(self._queue, wait)

    async def _limits(self) -> QueueLimits:
        return await self._access.part(lambda backend: backend.limits, Feature.LIMITS)

    async def workers(self) -> Sequence[WorkerInfo]:
        """Returns the workers that are connected to the queue, in any language."""
        return await (await self._access.part(lambda backend: backend.workers, Feature.WORKERS)).workers(self._queue)

    # --- events and unique keys -------------------------------------------------------------------------------------

    async def publish(self, event: str, fields: Mapping[str, str] | None = None) -> str:
        """Adds an event of the caller's own to the queue's stream, with texts as fields. Returns its id."""
        given = {} if fields is None else dict(checks.mapping("fields", fields))
        for name, value in given.items():
            if not isinstance(value, str) or name == "event":  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
                raise InvalidOption(f"fields.{name}", value, "must be a text under a name other than 'event'")
            text("fields", name)
            maybe_empty(f"fields.{name}", value)
        kind = text("event", event)
        return await (await self._event_control()).publish(self._queue, kind, given)

    async def last_events(self, limit: int = 100) -> Sequence[Event]:
        """Returns the newest events that the stream holds, oldest first. `queue.events(since=…)` goes on after them."""
        most = whole("limit", limit, minimum=1)
        return await (await self._event_control()).last(self._queue, most)

    async def trim_events(self, keep: int) -> int:
        """Deletes all but about the last `keep` events of the stream. Returns how many were deleted."""
        kept = whole("keep", keep, minimum=0)
        return await (await self._event_control()).trim_events(self._queue, kept)

    async def _event_control(self) -> EventControl:
        return await self._access.part(lambda backend: backend.event_control, Feature.EVENT_CONTROL)

    async def unique_owner(self, key: str) -> str | None:
        """Returns the id of the job that holds the unique key, or None."""
        wanted = text("key", key)
        return await (await self._unique_owners()).unique_owner(self._queue, wanted)

    async def release_unique(self, key: str) -> bool:
        """Frees a unique key before its job does. Returns False if no job held it."""
        wanted = text("key", key)
        return await (await self._unique_owners()).release_unique(self._queue, wanted)

    async def _unique_owners(self) -> UniqueOwners:
        return await self._access.part(lambda backend: backend.unique_owners, Feature.UNIQUE_OWNERS)

    async def unroutable(self, *, limit: int = 100) -> Sequence[Job]:
        """Returns waiting jobs that no live worker may take: the server that they name is down, or no worker has the
        stack, capabilities or region that they require."""
        most = whole("limit", limit, minimum=1)
        routing = await self._access.part(lambda backend: backend.routing, Feature.ROUTING)
        return await routing.unroutable(self._queue, most)
