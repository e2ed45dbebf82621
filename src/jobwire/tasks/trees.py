"""Adds compositions: plans the jobs of each, names the results that they wait for, and stores them together."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobwire.boundary import Feature, FlowNode, levels
from jobwire.errors import InvalidOption
from jobwire.model import Job, JobKey
from jobwire.preparing import prepare, snapshot
from jobwire.tasks.results import Source, with_sources
from jobwire.tasks.task import Call

_ALONE = ("id", "unique", "parent")
"""Options of a job that is not part of a chain."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A job of a composition, with the jobs that it waits for. `sources` are the results that it gets."""

    call: Call[Any]
    below: Sequence[Planned] = ()
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    id: str | None = None
    waits: bool = False
    """True for a step after the first, also if the group before it is empty."""

    @property
    def key(self) -> JobKey:
        assert self.id is not None  # noqa: S101 - every job that another one waits for has an id
        return JobKey(self.call.task.queue, self.id)

    def node(self) -> FlowNode:
        """Returns the job as it is stored, checked."""
        call, task = self.call, self.call.task
        data = with_sources(call.data, self.sources) if self.waits else call.data
        options = call.options if self.id is None else {**call.options, "id": self.id}
        prepared = prepare(
            task.app.connection.backend, task.queue, task.new_job(data, options), task.app.store.size_limit
        )
        return FlowNode(task.queue, prepared, "fail", [one.node() for one in self.below])


def new_id() -> str:
    """Returns an id for a job that another one waits for. Every protocol with such jobs takes a UUID."""
    return str(uuid.uuid4())


def check_in_chain(step: str, call: Call[Any]) -> None:
    """Refuses options that a job of a chain can't have."""
    unique = call.task.settings.unique
    if unique is not None:
        rule = f"has unique={unique!r}: in a chain another job that holds the key would take the step's place"
        raise InvalidOption(step, call, rule)
    for name in _ALONE:
        if call.options.get(name) is not None:
            raise InvalidOption(f"{step}.{name}", call.options[name], "can't be given to a step of a chain")


async def add(roots: Sequence[Planned]) -> list[Job[Any]]:
    """Adds the jobs, all checked before the first is written. Trees are added all or nothing. Returns the roots."""
    if not roots:
        return []
    app = roots[0].call.task.app
    backend = app.connection.backend
    can = backend.capabilities
    nodes = [root.node() for root in roots]
    everything = levels(nodes)
    names = list(dict.fromkeys(node.queue for node in everything))
    waiting = len(everything) > len(nodes)
    dependencies = can.part(backend.dependencies, Feature.DEPENDENCIES) if waiting else None
    if dependencies is not None:
        dependencies.check_queues(names)
    for name in names:
        await app.queue(name).open()
    if dependencies is not None:
        answers = await dependencies.add_trees(nodes)
    else:
        by_queue = {
            name: iter(await backend.add(name, [node.job for node in nodes if node.queue == name])) for name in names
        }
        answers = [next(by_queue[node.queue]) for node in nodes]
    return [
        root.call.task.typed(snapshot(can, node.queue, node.job, answer, None, has_children=bool(node.children)))
        for root, node, answer in zip(roots, nodes, answers, strict=False)
    ]
