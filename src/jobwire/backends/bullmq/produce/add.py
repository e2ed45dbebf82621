"""Adding jobs: what BullMQ allows, and the batches in which jobs travel."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.rules import WAITING_CHILDREN, delay_ms
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Argument, Scripts
from jobwire.boundary import Added, PreparedJob
from jobwire.errors import JobNotFound, StoreRefused, WrongState
from jobwire.model import AddStatus
from jobwire.options import NewJob, Parent

BATCH_JOBS = 500
BATCH_BYTES = 1_000_000
_ON_ITS_WAY = 0.0003
_only_numbers = frozenset((int,)).issuperset


class Place(NamedTuple):
    """Where a job stands among others: by what its producer asked for, or by where it is in a flow."""

    id: str | None
    parent: Parent | None
    waits: bool
    """For children, before it may run."""


async def add(store: RedisStore, scripts: Scripts, keys: Keys, jobs: Sequence[PreparedJob]) -> Sequence[Added]:
    """Add jobs in order. A missing parent is found before anything is written."""
    parents = {(job.new.parent.queue, job.new.parent.id) for job in jobs if job.new.parent is not None}
    if parents:
        await _require_parents(store, keys, parents, jobs)
    answers = _Answers()
    under_way: tuple[list[PreparedJob], asyncio.Task[Any]] | None = None
    try:
        for batch, children, now, args in _batches(keys.prefix, jobs, await store.clock.now_ms()):
            previous, under_way = under_way, None
            if previous is not None:
                answers.read(previous[0], await previous[1])
            sending = scripts.run("add", [keys.base], [len(batch), children, now, *args])
            under_way = (batch, asyncio.create_task(sending))
            if len(answers) + len(batch) < len(jobs):
                # Once this batch is on its way, the next one is put together while the server works. They still go
                # one after another.
                await asyncio.sleep(_ON_ITS_WAY)
        if under_way is not None:
            answers.read(under_way[0], await under_way[1])
    finally:
        if under_way is not None:
            under_way[1].cancel()
    return answers


class _Answers(Sequence[Added]):
    """What became of the jobs of one call. A number, which is what most get, is made an answer when it is looked at:
    a bulk's caller looks at few, and a fifth of a bulk's objects need not be made."""

    def __init__(self) -> None:
        self._all: list[int | Added] = []

    def read(self, batch: Sequence[PreparedJob], replies: Sequence[Any]) -> None:
        if len(batch) == len(replies) and _only_numbers(map(type, replies)):
            self._all += replies
            return
        for job, reply in zip(batch, replies, strict=True):
            self._all.append(reply if type(reply) is int else read_reply(reply, job.new.parent))

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, place: int) -> Added: ...

    @overload
    def __getitem__(self, place: slice) -> list[Added]: ...

    def __getitem__(self, place: int | slice) -> Added | list[Added]:
        if isinstance(place, slice):
            return [self[index] for index in range(len(self))[place]]
        one = self._all[place]
        return one if isinstance(one, Added) else Added(str(one))


def read_reply(reply: Any, parent: Parent | None) -> Added:
    """What became of one job; raises what the script refused."""
    if isinstance(reply, bytes):
        return Added(reply.decode())
    return _not_new(parent, *reply)


async def _require_parents(
    store: RedisStore, keys: Keys, parents: set[tuple[str, str]], jobs: Sequence[PreparedJob]
) -> None:
    own = {job.new.id for job in jobs}
    outside = [(queue, one) for queue, one in parents if not (queue == keys.queue and one in own)]
    found = await store.calls([("EXISTS", f"{keys.prefix}:{queue}:{one}") for queue, one in outside]) if outside else []
    for (queue, one), exists in zip(outside, found, strict=True):
        if not exists:
            raise JobNotFound(queue, one)


def _not_new(parent: Parent | None, code: Any, detail: bytes) -> Added:
    words = detail.decode(errors="replace")
    if isinstance(code, bytes):
        return Added(code.decode(), AddStatus.DUPLICATE)
    if code == -5 and parent is not None:
        raise JobNotFound(parent.queue, parent.id)
    if code == -7:
        raise WrongState(f"job {words!r} is there already, as the child of another parent")
    raise StoreRefused(f"the job could not be stored: {words}")


def _batches(
    prefix: str, jobs: Sequence[PreparedJob], now_ms: int
) -> Iterator[tuple[list[PreparedJob], int, int, list[Argument]]]:
    """Jobs in portions that hold the server up for some milliseconds at most; what a job shares with the one before
    is not said again."""
    batch: list[PreparedJob] = []
    args: list[Argument] = []
    children = size = 0
    now = now_ms / 1000  # so that a moment given to the millisecond is kept to the millisecond
    name, opts = "", b""
    for job in jobs:
        new = job.new
        if len(batch) >= BATCH_JOBS or (size + len(job.data) > BATCH_BYTES and batch):
            yield batch, children, now_ms, args
            batch, args, children, size, opts = [], [], 0, 0, b""
        batch.append(job)
        size += len(job.data)
        if job.options is opts is codec.PLAIN_OPTS and job.name == name:
            args += ("", job.data)
            continue
        delay = delay_ms(new, now)
        # A moment is further off when a job is checked than when it is sent; its delay is told as of now.
        own = job.options if job.options and new.run_at is None else codec.encode_opts(new, delay, prefix)
        if own == opts and job.name == name and not _is_special(new, delay):
            args += ("", job.data)
            continue
        name, opts = job.name, own
        children += new.parent is not None
        place = Place(new.id, new.parent, bool(new.extra.get(WAITING_CHILDREN)))
        add_features(args, job, place, own, (new.extra.get("timestamp", now_ms), delay), prefix)
    if batch:
        yield batch, children, now_ms, args


def _is_special(new: NewJob, delay: int) -> bool:
    return bool(new.id or delay or new.priority or new.lifo or new.unique or new.parent or new.extra)


def add_features(  # noqa: PLR0917 the parts of one line of arguments
    args: list[Argument], job: PreparedJob, place: Place, opts: bytes, times: tuple[int, int], prefix: str
) -> None:
    """A job's own part of the script's arguments, in the order that the script reads them; `times` is when it was
    made and its delay, in ms."""
    new = job.new
    features = "n"
    more: list[Argument] = [job.name, opts]
    if place.id is not None:
        features += "i"
        more.append(place.id)
    if times[1] or new.priority or new.extra:
        features += "t"
        more += (*times, new.priority or 0)
    if new.lifo:
        features += "l"
    if place.waits:
        features += "w"
    if new.unique is not None:
        features += "u"
        ttl = codec.deduplication(new.unique).get("ttl", "")
        more += (new.unique.key, ttl, "e" if new.unique.extend else "", "r" if new.unique.replace else "")
    if place.parent is not None:
        features += "p"
        more += codec.parent_fields(place.parent, prefix)
    args += (features, job.data, *more)
