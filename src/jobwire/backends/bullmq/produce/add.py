"""Adds jobs in batches, each in one round trip."""

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
_SENDING = 0.0003
"""Seconds after which a batch has been sent."""
_only_numbers = frozenset((int,)).issuperset


class Position(NamedTuple):
    """A job's relations to other jobs: those that its producer gave, or those of its position in a flow."""

    id: str | None
    parent: Parent | None
    waits: bool
    """True if it waits for children before it may run."""


async def add(store: RedisStore, scripts: Scripts, keys: Keys, jobs: Sequence[PreparedJob]) -> Sequence[Added]:
    """Adds jobs in order. Raises for a missing parent before anything is written."""
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
                # Let the task send this batch, so that the next one is encoded while the server works. The batches
                # still run one after another.
                await asyncio.sleep(_SENDING)
        if under_way is not None:
            answers.read(under_way[0], await under_way[1])
    finally:
        if under_way is not None:
            under_way[1].cancel()
    return answers


class _Answers(Sequence[Added]):
    """The results of one call. Most replies are a number, which becomes an Added only when it is read: callers that add
    many jobs read few results, and this saves a fifth of the objects."""

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
    def __getitem__(self, index: int) -> Added: ...

    @overload
    def __getitem__(self, index: slice) -> list[Added]: ...

    def __getitem__(self, index: int | slice) -> Added | list[Added]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        one = self._all[index]
        return one if isinstance(one, Added) else Added(str(one))


def read_reply(reply: Any, parent: Parent | None) -> Added:
    """Returns the result for one job. Raises if the script refused it."""
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
    text = detail.decode(errors="replace")
    if isinstance(code, bytes):
        return Added(code.decode(), AddStatus.DUPLICATE)
    if code == -5 and parent is not None:
        raise JobNotFound(parent.queue, parent.id)
    if code == -7:
        raise WrongState(f"job {text!r} exists already, as the child of another parent")
    raise StoreRefused(f"the job could not be stored: {text}")


def _batches(
    prefix: str, jobs: Sequence[PreparedJob], now_ms: int
) -> Iterator[tuple[list[PreparedJob], int, int, list[Argument]]]:
    """Yields batches that block the server for some milliseconds at most: the jobs, how many have a parent, the time,
    and the script's arguments. Name and options are left out where they are those of the job before."""
    batch: list[PreparedJob] = []
    args: list[Argument] = []
    children = size = 0
    now = now_ms / 1000  # whole milliseconds, so that a `run_at` keeps its millisecond
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
        # With `run_at`, the delay in the checked options was longer: encode it again as of now.
        own = job.options if job.options and new.run_at is None else codec.encode_opts(new, delay, prefix)
        if own == opts and job.name == name and not _is_special(new, delay):
            args += ("", job.data)
            continue
        name, opts = job.name, own
        children += new.parent is not None
        position = Position(new.id, new.parent, bool(new.extra.get(WAITING_CHILDREN)))
        add_features(args, job, position, own, (new.extra.get("timestamp", now_ms), delay), prefix)
    if batch:
        yield batch, children, now_ms, args


def _is_special(new: NewJob, delay: int) -> bool:
    return bool(new.id or delay or new.priority or new.lifo or new.unique or new.parent or new.extra)


def add_features(  # noqa: PLR0917 all of them are arguments of the script
    args: list[Argument], job: PreparedJob, position: Position, opts: bytes, times: tuple[int, int], prefix: str
) -> None:
    """Appends one job to the script's arguments, in the order in which the script reads them. `times` are the time of
    its creation and its delay, in ms."""
    new = job.new
    features = "n"
    more: list[Argument] = [job.name, opts]
    if position.id is not None:
        features += "i"
        more.append(position.id)
    if times[1] or new.priority or new.extra:
        features += "t"
        more += (*times, new.priority or 0)
    if new.lifo:
        features += "l"
    if position.waits:
        features += "w"
    if new.unique is not None:
        features += "u"
        ttl = codec.deduplication(new.unique).get("ttl", "")
        more += (new.unique.key, ttl, "e" if new.unique.extend else "", "r" if new.unique.replace else "")
    if position.parent is not None:
        features += "p"
        more += codec.parent_fields(position.parent, prefix)
    args += (features, job.data, *more)
