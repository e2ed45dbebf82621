"""Steps of a scenario, run by jobwire: through Queue, and through Consumer where a worker acts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from jobwire import Queue, Rate, codec, connect
from jobwire.backends.bullmq.work import retry
from jobwire.backends.redisio.clock import ServerClock
from jobwire.boundary import (
    Claim,
    Completed,
    Consumer,
    ConsumerSettings,
    Failed,
    Parked,
    Released,
    Snoozed,
    Throttled,
    Verdict,
)
from jobwire.errors import JobwireError
from jobwire.flow import Flow, FlowJob
from jobwire.model import JobTree, State

from .native_options import PARENT_FLAGS, new_job, worker_settings
from .peer_process import Refused

JITTER = 0.25
"""What chance says, here and in the Node interpreter."""
_PLACES = {"wait": State.WAITING}


class JobwireInterpreter:
    """jobwire on one database, in an event loop of its own."""

    def __init__(self, url: str, database: int) -> None:
        self._url = f"bullmq+{url.rsplit('/', 1)[0]}/{database}"
        self._runner = asyncio.Runner()
        self._clock = 0
        self._opened = False

    def run(self, clock: int, step: list[Any]) -> Any:
        """The answer to a step, in the form in which the Node interpreter gives it."""
        verb, queue, *args = step
        self._clock = clock
        with self._time_and_chance_stand_still():
            return self._runner.run(self._answer(verb, queue, args))

    def close(self) -> None:
        self._runner.run(self._end())
        self._runner.close()

    @contextmanager
    def _time_and_chance_stand_still(self) -> Iterator[None]:
        # Half a microsecond more: a float of seconds must not fall below its millisecond.
        with (
            mock.patch("time.time", return_value=self._clock / 1000 + 5e-7),
            mock.patch.object(ServerClock, "now_ms", mock.AsyncMock(return_value=self._clock)),
            mock.patch.object(ServerClock, "last_known_ms", return_value=float(self._clock)),
            mock.patch.object(retry.decide, "__defaults__", (lambda: JITTER,)),
        ):
            yield

    async def _answer(self, verb: str, queue: str, args: list[Any]) -> Any:
        try:
            answer = getattr(self, f"do_{verb}")(queue, *args)
            return await answer if inspect.isawaitable(answer) else answer
        except (JobwireError, NotHeld) as error:
            return Refused(str(error))

    async def _end(self) -> None:
        if self._opened:
            for consumer in self._consumers.values():
                await consumer.close()
            for queue in self._queues.values():
                await queue.close()
            await self._connection.close()
        self._opened = False

    # --- what a step needs ------------------------------------------------------------------------------------------

    async def do_begin(self, _queue: str) -> None:
        await self._end()
        self._connection = await connect(self._url).open()
        self._queues: dict[str, Queue] = {}
        self._consumers: dict[str, Consumer] = {}
        self._held: dict[tuple[str, str], list[Claim]] = {}
        self._opened = True

    async def queue(self, name: str) -> Queue:
        if name not in self._queues:
            self._queues[name] = await Queue(name, self._connection).open()
        return self._queues[name]

    async def _consumer(self, name: str) -> Consumer:
        if name not in self._consumers:
            await self.do_worker(name, {})
        return self._consumers[name]

    def _hold(self, queue: str, claims: Any) -> list[Any] | None:
        for claim in claims:
            self._held.setdefault((queue, claim.job.id), []).append(claim)
            return [claim.job.id, claim.doomed]
        return None

    def _claim(self, queue: str, reference: str) -> Claim:
        job_id, _, back = str(reference).partition("~")
        found = self._held.get((queue, job_id), [])
        try:
            return found[-1 - int(back or 0)]
        except IndexError:
            raise NotHeld(f"{reference} is not held") from None

    async def _settle(self, queue: str, outcome: Any, claim: int = 0) -> Any:
        settled = await (await self._consumer(queue)).settle([outcome], claim)
        verdict = "lost" if settled.verdicts[0] is Verdict.LOST else "done"
        return [verdict, self._hold(queue, settled.claims)]

    # --- producers --------------------------------------------------------------------------------------------------

    async def do_add(self, queue: str, name: str, opts: Any = None, data: Any = codec) -> str:
        job = new_job(name, opts, {} if data is codec else data)
        [added] = await (await self.queue(queue)).add_many([job])
        return added.id

    async def do_bulk(self, queue: str, *jobs: list[Any]) -> list[str]:
        new = [new_job(name, *rest[:1], data=rest[1] if len(rest) > 1 else {}) for name, *rest in jobs]
        return [job.id for job in await (await self.queue(queue)).add_many(new)]

    async def do_flow(self, _queue: str, root: dict[str, Any]) -> list[str]:
        async with Flow(self._connection) as flow:
            return _ids(await flow.add(_flow_job(root)))

    async def do_schedule(self, queue: str, key: str, repeat: dict[str, Any], template: Any = None) -> str:
        template = template or {}
        job = new_job(template.get("name", key), template.get("opts"), None)
        options = {
            "every": repeat["every"] / 1000 if "every" in repeat else None,
            "cron": repeat.get("pattern"),
            "tz": repeat.get("tz"),
            "limit": repeat.get("limit"),
            "start_at": self._moment(repeat.get("startDate")),
            "end_at": self._moment(repeat.get("endDate")),
            "immediately": repeat.get("immediately", False),
        }
        more = {
            name: value
            for name in ("priority", "attempts", "backoff", "keep_completed", "keep_failed", "lifo", "extra")
            if (value := getattr(job, name)) not in (None, False, {})
        }
        made = await (await self.queue(queue)).schedule(
            key, name=template.get("name", key), data=template.get("data", {}), **options, **more
        )
        assert made.next_run is not None
        return f"repeat:{key}:{round(made.next_run.timestamp() * 1000)}"

    def _moment(self, offset: int | None) -> datetime | None:
        return None if offset is None else datetime.fromtimestamp((self._clock + offset) / 1000, UTC)

    async def do_unschedule(self, queue: str, key: str) -> bool:
        return await (await self.queue(queue)).unschedule(key)

    # --- workers ----------------------------------------------------------------------------------------------------

    async def do_worker(self, queue: str, options: dict[str, Any]) -> None:
        await self.queue(queue)
        settings = ConsumerSettings(queue, f"worker-{len(self._consumers)}", **worker_settings(options))
        if queue in self._consumers:
            await self._consumers[queue].close()
        self._consumers[queue] = self._connection.backend.consumer(settings)

    async def do_claim(self, queue: str) -> Any:
        return self._hold(queue, (await (await self._consumer(queue)).settle([], 1)).claims)

    async def do_complete(self, queue: str, job_id: str, value: Any = None, then: str = "") -> Any:
        outcome = Completed(self._claim(queue, job_id), codec.dumps(value))
        return await self._settle(queue, outcome, int(then == "next"))

    async def do_fail(self, queue: str, job_id: str, reason: str, how: str = "", then: str = "") -> Any:
        outcome = Failed(self._claim(queue, job_id), reason, f"Error: {reason}", final=how == "final")
        return await self._settle(queue, outcome, int(then == "next"))

    async def do_doom(self, queue: str, job_id: str) -> Any:
        claim = self._claim(queue, job_id)
        return await self._settle(queue, Failed(claim, claim.doomed or "", final=True))

    async def do_release(self, queue: str, job_id: str) -> Any:
        return await self._settle(queue, Released(self._claim(queue, job_id)))

    async def do_snooze(self, queue: str, job_id: str, ms: int) -> Any:
        return await self._settle(queue, Snoozed(self._claim(queue, job_id), ms / 1000))

    async def do_park(self, queue: str, job_id: str) -> Any:
        return await self._settle(queue, Parked(self._claim(queue, job_id)))

    async def do_throttled(self, queue: str, job_id: str, ms: int) -> Any:
        return await self._settle(queue, Throttled(self._claim(queue, job_id), ms / 1000))

    async def do_extend(self, queue: str, job_id: str, _ms: int) -> bool:
        """For as long as the worker's lease, which a scenario makes as long as it asks for here."""
        return not await (await self._consumer(queue)).extend([self._claim(queue, job_id)])

    async def do_stalled(self, queue: str) -> list[str]:
        recovery = next(duty for duty in (await self._consumer(queue)).duties() if duty.name == "recover")
        return sorted((await recovery.run()).recovered)

    async def do_progress(self, queue: str, job_id: str, value: Any) -> None:
        await (await self.queue(queue)).admin.update_progress(job_id, value)

    async def do_log(self, queue: str, job_id: str, line: str, keep: int = 0) -> None:
        await (await self.queue(queue)).admin.log(job_id, line, keep=keep)

    # --- operators --------------------------------------------------------------------------------------------------

    async def do_pause(self, queue: str) -> None:
        await (await self.queue(queue)).admin.pause()

    async def do_resume(self, queue: str) -> None:
        await (await self.queue(queue)).admin.resume()

    async def do_promote(self, queue: str, job_id: str) -> None:
        await (await self.queue(queue)).admin.promote(job_id)

    async def do_retry(self, queue: str, job_id: str) -> None:
        await (await self.queue(queue)).admin.retry(job_id)

    async def do_remove(self, queue: str, job_id: str, how: str = "") -> None:
        await (await self.queue(queue)).admin.remove(job_id, children=how != "alone")

    async def do_data(self, queue: str, job_id: str, data: Any) -> None:
        await (await self.queue(queue)).admin.update_data(job_id, data)

    async def do_priority(self, queue: str, job_id: str, priority: int, front: str = "") -> None:
        await (await self.queue(queue)).admin.change_priority(job_id, priority, front=front == "front")

    async def do_delay(self, queue: str, job_id: str, ms: int) -> None:
        await (await self.queue(queue)).admin.change_delay(job_id, ms / 1000)

    async def do_clearlogs(self, queue: str, job_id: str, keep: int = 0) -> None:
        await (await self.queue(queue)).admin.clear_logs(job_id, keep=keep)

    async def do_retryall(self, queue: str, state: str = "failed") -> None:
        await (await self.queue(queue)).admin.retry_all(state)

    async def do_promoteall(self, queue: str) -> None:
        await (await self.queue(queue)).admin.promote_all()

    async def do_drain(self, queue: str, delayed: str = "") -> None:
        await (await self.queue(queue)).admin.drain(delayed=delayed == "delayed")

    async def do_clean(self, queue: str, state: str, age: int = 0, limit: int = 0) -> list[str]:
        place = _PLACES.get(state) or State(state)
        return sorted(await (await self.queue(queue)).admin.clean(place, older_than=age / 1000, limit=limit))

    async def do_obliterate(self, queue: str, force: str = "") -> None:
        await (await self.queue(queue)).admin.obliterate(force=force == "force")

    async def do_concurrency(self, queue: str, jobs: int | None) -> None:
        await (await self.queue(queue)).admin.limit_concurrency(jobs)

    async def do_rate(self, queue: str, jobs: int | None, ms: int = 1) -> None:
        await (await self.queue(queue)).admin.limit_rate(None if jobs is None else Rate(jobs, per=ms / 1000))

    async def do_throttle(self, queue: str, ms: int) -> None:
        await (await self.queue(queue)).admin.throttle(ms / 1000)

    async def do_publish(self, queue: str, event: str, fields: Any = None) -> None:
        await (await self.queue(queue)).admin.publish(event, fields)

    async def do_owner(self, queue: str, key: str) -> str | None:
        return await (await self.queue(queue)).admin.unique_owner(key)

    async def do_free(self, queue: str, key: str) -> bool:
        return await (await self.queue(queue)).admin.release_unique(key)

    async def do_family(self, queue: str, job_id: str) -> list[Any]:
        found = await (await self.queue(queue)).children(job_id)
        values = {f"bull:{key.queue}:{key.id}": value for key, value in found.values.items()}
        ignored = {f"bull:{key.queue}:{key.id}": value for key, value in found.ignored.items()}
        return [values, ignored, len(found.pending), len(found.failed)]

    async def do_counts(self, queue: str) -> list[int]:
        counts = await (await self.queue(queue)).counts()
        order = (State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED, State.WAITING_CHILDREN)
        return [counts[state] for state in order]


def _flow_job(node: dict[str, Any]) -> FlowJob:
    opts = dict(node.get("opts", {}))
    flags = [words for flag, words in PARENT_FLAGS.items() if opts.pop(flag, False)]
    job = new_job(node["name"], opts)
    given = {field.name: value for field in fields(job) if (value := getattr(job, field.name)) != field.default}
    given.pop("data", None)
    if not given["extra"]:
        del given["extra"]
    children = [_flow_job(child) for child in node.get("children", [])]
    how = {"on_failure": flags[0]} if flags else {}
    return FlowJob(node.get("queue", "q"), node.get("data", {}), children=children, **how, **given)


def _ids(tree: JobTree) -> list[str]:
    return [tree.job.id, *(job_id for child in tree.children for job_id in _ids(child))]


class NotHeld(Exception):
    """A step speaks of a job that no worker holds."""
