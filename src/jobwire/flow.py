"""Flows: trees of jobs across queues, in which a job runs when its children are done.

    flow = Flow("bullmq+redis://127.0.0.1:6379/0")
    tree = await flow.add(FlowJob("books", {"isbn": 1}, children=[FlowJob("pages", {"n": n}) for n in range(3)]))
    print(await tree.job.wait(timeout=30))

A tree is added as a whole or not at all. If a child fails for good, its `on_failure` decides what its parent does:

* wait: the parent goes on waiting. An operator may retry the child.
* fail: the parent fails too.
* continue: the parent runs at once, even if other children are pending.
* ignore: the child counts as done, and its error is kept for the parent.
* remove: the child counts as done, and its error is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Never, Self, Unpack

from jobwire import forking, spelling
from jobwire.boundary import Backend, Feature, FlowNode, Flows, OnFailure, levels
from jobwire.checks import items, text, whole
from jobwire.connection import Connection, resolve
from jobwire.errors import InvalidOption, JobNotFound
from jobwire.model import Job, JobKey, JobTree, Waiter
from jobwire.options import DEFAULT_SIZE_LIMIT, NO_DATA, JobOptions, NewJob, Parent, check_names
from jobwire.preparing import prepare, snapshot
from jobwire.queue import Queue


class FlowJob:
    """A job of a flow, with the jobs that it waits for. Options are those of `Queue.add`.

    A root may name a `parent` that is in the store already. The parent of any other job is the job above it.
    """

    __slots__ = ("children", "job", "on_failure", "queue")

    def __init__(
        self,
        queue: str,
        data: Any = NO_DATA,
        *,
        name: str | None = None,
        children: Sequence[FlowJob] = (),
        on_failure: OnFailure = "wait",
        **options: Unpack[JobOptions],
    ) -> None:
        self.queue = text("queue", queue)
        check_names(options, ("name", "children", "on_failure"), "a job")
        self.job = NewJob(data, name, **options)
        self.children = tuple(items("children", children, "FlowJobs"))
        self.on_failure: OnFailure = Parent("-", "-", on_failure).on_failure

    def __repr__(self) -> str:
        return f"<FlowJob {self.job.name or self.queue!r} in {self.queue!r}, {len(self.children)} below it>"


class Flow:
    """Adds and reads flows of one store. Give a URL, a Connection to share, or nothing, as to Queue."""

    def __init__(
        self,
        url: str | Connection | None = None,
        *,
        size_limit: int | None = DEFAULT_SIZE_LIMIT,
        **unknown: Never,
    ) -> None:
        for option, value in unknown.items():
            raise spelling.unknown(option, value, ("size_limit",), "a Flow")
        self._size_limit = size_limit if size_limit is None else whole("size_limit", size_limit, minimum=1)
        self.connection, self._owns = resolve(url)
        self._backend = self.connection.backend
        self._backend.capabilities.require(Feature.FLOWS)
        self._queues: dict[str, Queue] = {}
        forking.follow(self, Flow._after_fork)

    def _after_fork(self) -> None:
        self._backend = self.connection.backend

    async def open(self) -> Self:
        await self.connection.open()
        return self

    async def close(self) -> None:
        for queue in self._queues.values():
            await queue.close()
        if self._owns:
            await self.connection.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Flow {self.connection.address.redacted}>"

    async def add(self, flow: FlowJob) -> JobTree:
        """Adds the tree, all or nothing. Returns its jobs as they were added."""
        [tree] = await self.add_many([flow])
        return tree

    async def add_many(self, flows: Sequence[FlowJob]) -> list[JobTree]:
        """Adds several trees, all or nothing."""
        await self.connection.open()
        roots = [prepare_tree(self._backend, flow, self._size_limit) for flow in flows]
        return await add_trees(self._backend, roots, self._queue)

    async def get(self, queue: str, job_id: str, *, depth: int = 10, width: int = 100) -> JobTree:
        """Returns the job and the tree below it: up to `depth` levels, and up to `width` pending and `width` finished
        children of each job.

        Children that are not in the store any more are left out. Raises JobNotFound if the job itself is gone.
        """
        await self.connection.open()
        root = JobKey(text("queue", queue), text("job_id", job_id))
        levels: list[list[JobKey]] = [[root]]
        children: dict[JobKey, Sequence[JobKey]] = {}
        whole("width", width, minimum=1)
        for _ in range(whole("depth", depth, minimum=1) - 1):
            found = await _flows(self._backend).children_of(levels[-1], width)
            children.update(zip(levels[-1], found, strict=True))
            below = [key for keys in found for key in keys]
            if not below:
                break
            levels.append(below)
        jobs = await self._read({key for level in levels for key in level})
        if root not in jobs:
            raise JobNotFound(queue, job_id)
        return _read_tree(root, jobs, children)

    async def _read(self, keys: set[JobKey]) -> dict[JobKey, Job]:
        jobs: dict[JobKey, Job] = {}
        for queue in {key.queue for key in keys}:
            ids = [key.id for key in keys if key.queue == queue]
            origin = self._queue(queue)
            for job in await self._backend.get(queue, ids):
                if job is not None:
                    jobs[JobKey(queue, job.id)] = replace(job, origin=origin)
        return jobs

    def _queue(self, name: str) -> Queue:
        """Returns the queue of that name, through which its jobs can be waited for."""
        if name not in self._queues:
            self._queues[name] = Queue(name, self.connection)
        return self._queues[name]


def _flows(backend: Backend) -> Flows:
    return backend.capabilities.part(backend.flows, Feature.FLOWS)


def prepare_tree(
    backend: Backend, flow: FlowJob, size_limit: int | None = DEFAULT_SIZE_LIMIT, *, below: JobKey | None = None
) -> FlowNode:
    """Checks and encodes every job of the tree, without calling the store. `below` is a job in the store that becomes
    the parent of the root."""
    job = flow.job
    if below is not None:
        if job.parent is not None:
            raise InvalidOption("parent", job.parent, "can't be given: the parent is the job that adds the child")
        job = replace(job, parent=Parent(below.id, below.queue, flow.on_failure))
    children: list[FlowNode] = []
    for child in flow.children:
        if child.job.parent is not None:
            raise InvalidOption(
                "parent", child.job.parent, "can't be given below the root: the parent is the job above it in the tree"
            )
        _check_unique(child.job)
        children.append(prepare_tree(backend, child, size_limit))
    if flow.children or job.parent is not None:
        _check_unique(job)
    return FlowNode(flow.queue, prepare(backend, flow.queue, job, size_limit), flow.on_failure, children)


def _check_unique(job: NewJob) -> None:
    if job.unique is not None:
        rule = "can't be given to a parent or a child: the job that already holds the key is not part of the tree"
        raise InvalidOption("unique", job.unique, rule)


async def add_trees(
    backend: Backend, roots: Sequence[FlowNode], origin: Callable[[str], Waiter] | None = None
) -> list[JobTree]:
    """Stores prepared trees, all or nothing. `origin` returns the object through which jobs of a queue can be waited
    for."""
    nodes = levels(roots)
    flows = _flows(backend)
    parents = [root.job.new.parent.queue for root in roots if root.job.new.parent is not None]
    flows.check_flow([*parents, *(node.queue for node in nodes)])
    jobs: dict[int, Job] = {}
    for node, added in zip(nodes, await flows.add_flow(roots), strict=True):
        waiter = origin(node.queue) if origin is not None else None
        jobs[id(node)] = snapshot(
            backend.capabilities, node.queue, node.job, added, waiter, has_children=bool(node.children)
        )

    def tree(node: FlowNode) -> JobTree:
        return JobTree(jobs[id(node)], tuple(tree(child) for child in node.children))

    return [tree(root) for root in roots]


def _read_tree(key: JobKey, jobs: Mapping[JobKey, Job], children: Mapping[JobKey, Sequence[JobKey]]) -> JobTree:
    below = [child for child in children.get(key, ()) if child in jobs]
    return JobTree(jobs[key], tuple(_read_tree(child, jobs, children) for child in below))
