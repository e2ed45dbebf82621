"""Flows: trees of jobs across queues. A job's children are stored as full keys, so they may be in any queue."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from jobwire import codec as json_codec
from jobwire.backend import Added
from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.producer import Place, add_features, read_reply
from jobwire.backends.bullmq.rules import delay_ms
from jobwire.backends.redisio.scripts import Argument, Scripts
from jobwire.errors import MalformedPayload
from jobwire.facets import FlowNode, levels
from jobwire.model import Children, JobKey
from jobwire.options import Parent


async def add_flow(scripts: Scripts, keys_of: Callable[[str], Keys], roots: Sequence[FlowNode]) -> Sequence[Added]:
    """Add the trees with one script, so all or nothing. Jobs without an id get a UUID, as BullMQ's do."""
    nodes = levels(roots)
    if not nodes:
        return []
    ids = {id(node): node.job.new.id or str(uuid.uuid4()) for node in nodes}
    parents = {id(root): root.job.new.parent for root in roots}
    for node in nodes:
        for child in node.children:
            parents[id(child)] = Parent(ids[id(node)], node.queue, child.on_failure)
    places = {queue: number for number, queue in enumerate(sorted({node.queue for node in nodes}), 1)}
    now = await scripts.clock.now_ms()
    about: list[Argument] = []
    jobs: list[Argument] = []
    for node in nodes:
        keys, new, parent = keys_of(node.queue), node.job.new, parents[id(node)]
        delay = delay_ms(new, now / 1000)
        opts = codec.encode_opts(new, delay, keys.prefix, parent)
        parent_key = f"{keys.prefix}:{parent.queue}:{parent.id}" if parent is not None else ""
        about += (places[node.queue], ids[id(node)], parent_key)
        times = (new.extra.get("timestamp", now), delay)
        add_features(jobs, node.job, Place(ids[id(node)], parent, bool(node.children)), opts, times, keys.prefix)
    outside = [about[3 * place + 2] for place, root in enumerate(roots) if root.job.new.parent is not None]
    args = [now, len(outside), *outside, len(nodes), *about, *jobs]
    replies: list[Any] = await scripts.run("add_flow", [keys_of(queue).base for queue in places], args)
    if len(replies) == 2 and isinstance(replies[0], int):
        read_reply(replies, _named(replies, roots, keys_of))
    return [read_reply(reply, parents[id(node)]) for node, reply in zip(nodes, replies, strict=True)]


def _named(refusal: list[Any], roots: Sequence[FlowNode], keys_of: Callable[[str], Keys]) -> Parent | None:
    """The parent that a refusal is about."""
    for root in roots:
        parent = root.job.new.parent
        if parent is not None and codec.parent_fields(parent, keys_of(root.queue).prefix)[0].encode() == refusal[1]:
            return parent
    return None


async def children(scripts: Scripts, keys: Keys, job_id: str) -> Children:
    values, ignored, pending, failed = await scripts.run("children", [keys.job(job_id)], [])
    return Children(
        values={keys.job_key(key): _json(value) for key, value in zip(values[::2], values[1::2], strict=True)},
        ignored={
            keys.job_key(key): reason.decode(errors="replace")
            for key, reason in zip(ignored[::2], ignored[1::2], strict=True)
        },
        pending=tuple(map(keys.job_key, pending)),
        failed=tuple(map(keys.job_key, failed)),
    )


async def children_of(scripts: Scripts, keys: Sequence[tuple[Keys, str]], limit: int) -> Sequence[Sequence[JobKey]]:
    """The children of each of these jobs, up to `limit` of each kind."""
    if not keys:
        return []
    families: list[list[bytes]] = await scripts.run("family_keys", [one.job(job_id) for one, job_id in keys], [limit])
    return [[one.job_key(child) for child in family] for (one, _), family in zip(keys, families, strict=True)]


def _json(value: bytes) -> Any:
    try:
        return json_codec.loads(value)
    except MalformedPayload:
        return value.decode(errors="replace")
