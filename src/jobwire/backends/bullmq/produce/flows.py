"""Flows: trees of jobs across queues. A job's children are stored as full keys, so they may be in any queue."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from jobwire import codec as json_codec
from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.connection import Server
from jobwire.backends.bullmq.operate import admin
from jobwire.backends.bullmq.produce.add import Position, add_features, read_reply
from jobwire.backends.bullmq.rules import delay_ms
from jobwire.backends.redisio.scripts import Argument
from jobwire.boundary import Acted, Added, FlowNode, levels
from jobwire.errors import MalformedPayload
from jobwire.model import Children, JobKey
from jobwire.options import Parent


class BullFlows:
    """Implements Flows."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def check_flow(self, queues: Sequence[str]) -> None:
        self._server.check_together(queues)

    async def add_flow(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        """Adds the trees with one script, so all or nothing. Jobs without an id get a UUID, as in BullMQ."""
        nodes = levels(roots)
        if not nodes:
            return []
        ids = {id(node): node.job.new.id or str(uuid.uuid4()) for node in nodes}
        parents = {id(root): root.job.new.parent for root in roots}
        for node in nodes:
            for child in node.children:
                parents[id(child)] = Parent(ids[id(node)], node.queue, child.on_failure)
        indexes = {queue: index for index, queue in enumerate(sorted({node.queue for node in nodes}), 1)}
        now = await self._server.scripts.clock.now_ms()
        about: list[Argument] = []
        jobs: list[Argument] = []
        for node in nodes:
            keys, new, parent = self._server.keys(node.queue), node.job.new, parents[id(node)]
            delay = delay_ms(new, now / 1000)
            opts = codec.encode_opts(new, delay, keys.prefix, parent)
            parent_key = f"{keys.prefix}:{parent.queue}:{parent.id}" if parent is not None else ""
            about += (indexes[node.queue], ids[id(node)], parent_key)
            times = (new.extra.get("timestamp", now), delay)
            add_features(jobs, node.job, Position(ids[id(node)], parent, bool(node.children)), opts, times, keys.prefix)
        outside = [about[3 * index + 2] for index, root in enumerate(roots) if root.job.new.parent is not None]
        args = [now, len(outside), *outside, len(nodes), *about, *jobs]
        replies: list[Any] = await self._server.scripts.run(
            "add_flow", [self._server.keys(queue).base for queue in indexes], args
        )
        if len(replies) == 2 and isinstance(replies[0], int):
            read_reply(replies, _named(replies, roots, self._server.prefix))
        return [read_reply(reply, parents[id(node)]) for node, reply in zip(nodes, replies, strict=True)]

    async def children(self, queue: str, job_id: str) -> Children:
        keys = self._server.keys(queue)
        values, ignored, pending, failed = await self._server.scripts.run("children", [keys.job(job_id)], [])
        return Children(
            values={keys.job_key(key): _json(value) for key, value in zip(values[::2], values[1::2], strict=True)},
            ignored={
                keys.job_key(key): reason.decode(errors="replace")
                for key, reason in zip(ignored[::2], ignored[1::2], strict=True)
            },
            pending=tuple(map(keys.job_key, pending)),
            failed=tuple(map(keys.job_key, failed)),
        )

    async def children_of(self, keys: Sequence[JobKey], limit: int) -> Sequence[Sequence[JobKey]]:
        if not keys:
            return []
        parents = [(self._server.keys(key.queue), key.id) for key in keys]
        stored = [of_queue.job(job_id) for of_queue, job_id in parents]
        families: list[list[bytes]] = await self._server.scripts.run("family_keys", stored, [limit])
        return [
            [of_queue.job_key(child) for child in family]
            for (of_queue, _), family in zip(parents, families, strict=False)  # a cluster gets one key more
        ]

    async def remove_alone(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.remove(self._server, queue, job_ids, children=False)


def _named(refusal: list[Any], roots: Sequence[FlowNode], prefix: str) -> Parent | None:
    """Returns the parent whose key is in a refusal."""
    for root in roots:
        parent = root.job.new.parent
        if parent is not None and codec.parent_fields(parent, prefix)[0].encode() == refusal[1]:
            return parent
    return None


def _json(value: bytes) -> Any:
    try:
        return json_codec.loads(value)
    except MalformedPayload:
        return value.decode(errors="replace")
